#!/usr/bin/env bash
# start.sh DIRECTORY PYTHON: starts a Slurm of two nodes on this machine, as root, from Debian's slurm-wlm and munge.
# Its epilog records each job with that Python's EpochZero in DIRECTORY/home.
# Prints the file to set SLURM_CONF to. A second partition preempts the first one. stop.sh ends it.
set -euo pipefail
here=$(dirname "$(realpath "$0")"); top=$(realpath "$1"); host=$(hostname -s)
mkdir -p "$top"/{state,spool-n1,spool-n2,munge}
if ! munge -n >/dev/null 2>&1; then
    [ -s /etc/munge/munge.key ] || { dd if=/dev/urandom bs=1 count=1024 status=none > /etc/munge/munge.key; }
    chown munge: /etc/munge/munge.key; chmod 400 /etc/munge/munge.key
    mkdir -p /run/munge; chown munge: /run/munge; chmod 755 /run/munge
    runuser -u munge -- /usr/sbin/munged --force 2>"$top/munged.err"
fi
cat > "$top/slurm.conf" <<CONF
ClusterName=lab
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
StateSaveLocation=$top/state
SlurmdSpoolDir=$top/spool-%n
SlurmctldPidFile=$top/slurmctld.pid
SlurmdPidFile=$top/slurmd-%n.pid
SlurmctldLogFile=$top/slurmctld.log
SlurmdLogFile=$top/slurmd-%n.log
SlurmctldPort=6917
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MinJobAge=600
KillWait=10
OverTimeLimit=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
AccountingStorageType=accounting_storage/none
MpiDefault=none
EpilogSlurmctld=$top/epilog.sh
TaskProlog=$top/task_prolog.sh
CliFilterPlugins=cli_filter/lua
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=6918 CPUs=1 RealMemory=500 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=6919 CPUs=1 RealMemory=500 State=UNKNOWN
PartitionName=low Nodes=n1,n2 Default=YES MaxTime=60 PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=high Nodes=n1,n2 MaxTime=60 PriorityTier=10 PreemptMode=OFF State=UP
CONF
# The files for admins, with the paths of this installation.
for file in cli_filter.lua task_prolog.sh srun epilog.sh; do
    sed -e "s#/opt/epochzero/bin/epochzero#$top/bin/epochzero#; s#/opt/epochzero/slurm#$top/bin#" \
        -e "s#/var/lib/epochzero#$top/home SLURM_CONF=$top/slurm.conf#" "$here/../../docs/deploy/slurm/$file" > "$top/$file"
done
mkdir -p "$top/bin"
mv "$top/srun" "$top/bin/srun"
printf '#!/bin/bash\nexec "%s" -m epochzero "$@"\n' "$2" > "$top/bin/epochzero"
chmod 755 "$top"/{epilog,task_prolog}.sh "$top"/bin/*
chmod 755 "$top"
export SLURM_CONF="$top/slurm.conf"
/usr/sbin/slurmctld
/usr/sbin/slurmd -N n1
/usr/sbin/slurmd -N n2
for _ in $(seq 60); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null | head -1)" = 2 ] && { echo "$SLURM_CONF"; exit 0; }
    sleep 0.5
done
sinfo >&2; tail -20 "$top"/slurmctld.log >&2
exit 1
