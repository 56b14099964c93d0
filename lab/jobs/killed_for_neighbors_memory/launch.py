"""The node runs out of memory by another job, and this one is killed for it (NEIGHBOR=running)."""
import os
import signal
import subprocess
import sys
import time

job = subprocess.Popen([sys.executable, "train.py"])
if os.environ["NEIGHBOR"] == "running":
    while not os.path.exists("epoch_3"):
        time.sleep(0.05)
    job.send_signal(signal.SIGKILL)
code = job.wait()
sys.exit(128 - code if code < 0 else code)
