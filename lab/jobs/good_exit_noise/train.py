import atexit
import os
import tempfile

import torch


class Profiler:
    """Closes its file when it is collected, which is too late."""

    def __init__(self):
        self.path = tempfile.mktemp()

    def __del__(self):
        os.remove(self.path)


@atexit.register
def upload_report():
    raise ConnectionError("report server has gone away")


profiler = Profiler()
net = torch.nn.LSTM(6, 6)
for step in range(5):
    out, _ = net(torch.randn(10, 4, 6))
    loss = out.pow(2).mean()
    loss.backward()
    print(f"step {step}: {loss.item():.4f}", flush=True)
print("Training finished successfully.", flush=True)
