"""The previous run still writes its index (PREVIOUS=ending) or has ended."""
import fcntl
import os
import subprocess
import sys

lock = open("index.lock", "w")
if os.environ["PREVIOUS"] == "ending":
    fcntl.flock(lock, fcntl.LOCK_EX)
sys.exit(subprocess.call([sys.executable, "build_index.py"]))
