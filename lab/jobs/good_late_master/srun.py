"""Run TASKS copies of a command and label their lines as `srun -l` does, into logs/slurm-4242.out."""
import os
import subprocess
import sys
import threading

tasks, command = int(sys.argv[1]), sys.argv[2:]
os.makedirs("logs", exist_ok=True)
out = open("logs/slurm-4242.out", "wb", buffering=0)
lock = threading.Lock()


def relay(number, pipe):
    for line in pipe:
        with lock:
            out.write(b"%d: " % number + line.rstrip(b"\n") + b"\n")


procs, threads = [], []
for n in range(tasks):
    env = {**os.environ, "RANK": str(n), "WORLD_SIZE": str(tasks), "LOCAL_RANK": str(n),
           "SLURM_PROCID": str(n), "SLURM_NTASKS": str(tasks), "SLURM_JOB_ID": "4242",
           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ.get("MASTER_PORT", "29641")}
    extra = os.environ.get(f"TASK{n}_ENV")
    if extra:
        env.update(pair.split("=", 1) for pair in extra.split())
    proc = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    procs.append(proc)
    threads.append(threading.Thread(target=relay, args=(n, proc.stdout)))
    threads[-1].start()
codes = [proc.wait() for proc in procs]
for thread in threads:
    thread.join()
sys.exit(max(128 - code if code < 0 else code for code in codes))
