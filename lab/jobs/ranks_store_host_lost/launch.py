"""The node of rank 0, which hosts the store, is taken away (FIRST_NODE=lost) or stays; rank 1 is here."""
import os
import subprocess
import sys
import time

env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29729", "WORLD_SIZE": "2"}
there = subprocess.Popen(
    [sys.executable, "train.py"], env={**env, "RANK": "0"}, stdout=subprocess.DEVNULL
)
here = subprocess.Popen([sys.executable, "train.py"], env={**env, "RANK": "1"})
if os.environ["FIRST_NODE"] == "lost":
    while not os.path.exists("rank1_waits"):
        time.sleep(0.1)
    time.sleep(1)
    there.kill()
sys.exit(here.wait())
