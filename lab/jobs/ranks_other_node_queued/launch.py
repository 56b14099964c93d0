"""This node runs rank 0; the node of rank 1 is still busy (QUEUE=long) or free."""
import os
import subprocess
import sys
import time

env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29721", "WORLD_SIZE": "2"}
here = subprocess.Popen([sys.executable, "train.py"], env={**env, "RANK": "0"})
if os.environ["QUEUE"] == "long":
    time.sleep(12)
there = subprocess.Popen(
    [sys.executable, "train.py"],
    env={**env, "RANK": "1"},
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)
code = here.wait()
there.kill()
sys.exit(code)
