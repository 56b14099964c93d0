"""The evaluation reads the latest checkpoint of a training that is writing it (TRAINING=saving) or waits."""
import io
import os
import subprocess
import sys

import torch

buffer = io.BytesIO()
torch.save({"epoch": 12, "model": torch.nn.Linear(64, 256).state_dict()}, buffer)
saved = buffer.getvalue()
with open("latest.pt", "wb") as file:
    file.write(saved[: len(saved) // 2] if os.environ["TRAINING"] == "saving" else saved)
    file.flush()
    code = subprocess.call([sys.executable, "evaluate.py", "--checkpoint", "latest.pt"])
sys.exit(code)
