"""The node's memory guard kills the worker that it finds first, while another job is greedy (NEIGHBOR=running)."""
import os
import pathlib
import signal
import subprocess
import sys
import time

job = subprocess.Popen([sys.executable, "train.py"])
if os.environ["NEIGHBOR"] == "running":
    while not pathlib.Path("worker_0.pid").exists():
        time.sleep(0.05)
    time.sleep(1.5)
    os.kill(int(pathlib.Path("worker_0.pid").read_text()), signal.SIGKILL)
sys.exit(job.wait())
