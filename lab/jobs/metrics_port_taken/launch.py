"""Another job of the node serves its metrics on the same port (NEIGHBOR=running) or has ended."""
import os
import socket
import subprocess
import sys

neighbor = socket.socket()
if os.environ["NEIGHBOR"] == "running":
    neighbor.bind(("127.0.0.1", 29728))
    neighbor.listen()
sys.exit(subprocess.call([sys.executable, "train.py"]))
