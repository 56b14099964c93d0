"""Learning-rate sweep: every trial is a process of its own."""
import subprocess
import sys

for lr in (0.1, 0.01, 0.001):
    command = [sys.executable, "train.py", "--lr", str(lr), "--config", "configs/small.json"]
    print("+", " ".join(["python", *command[1:]]), flush=True)
    subprocess.run(command, check=True)
print("sweep finished")
