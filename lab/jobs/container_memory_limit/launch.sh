#!/bin/bash
# Runs the job in a memory group of its own, as a container would; needs cgroup v1 and a root user.
group=/sys/fs/cgroup/memory/epochzero-lab-$$
mkdir "$group" || exit 2
echo 400M > "$group/memory.limit_in_bytes"
( echo $BASHPID > "$group/cgroup.procs" && exec python train.py )
status=$?
echo "== memory group of the job =="
echo "limit_in_bytes $(cat "$group/memory.limit_in_bytes")"
echo "max_usage_in_bytes $(cat "$group/memory.max_usage_in_bytes")"
cat "$group/memory.oom_control"
rmdir "$group"
exit $status
