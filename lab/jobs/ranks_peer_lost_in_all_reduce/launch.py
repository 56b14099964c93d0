"""This node runs rank 0; rank 1 is on another one, which its owner takes back (OTHER_NODE=lost)."""
import os
import subprocess
import sys

env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29720", "WORLD_SIZE": "2"}
here = subprocess.Popen([sys.executable, "train.py"], env={**env, "RANK": "0"})
there = subprocess.Popen(
    [sys.executable, "train.py"], env={**env, "RANK": "1"}, stdout=subprocess.PIPE, text=True
)
for line in there.stdout:
    if "step 30 " in line and os.environ["OTHER_NODE"] == "lost":
        there.kill()
sys.exit(here.wait())
