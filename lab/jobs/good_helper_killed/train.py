"""A helper process caches images; when it dies, training goes on without the cache."""
import os
import signal
import subprocess
import sys
import time

import torch

helper = subprocess.Popen([sys.executable, "-c", "import time; print('cache helper up', flush=True); time.sleep(60)"])
net = torch.nn.Linear(20, 20)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
restarts = 0
for step in range(12):
    if step == 4:
        os.kill(helper.pid, signal.SIGKILL)         # what a memory guard would do
        time.sleep(0.2)
    code = helper.poll()
    if code is not None and restarts == 0:
        print(f"[warning] cache helper (pid {helper.pid}) was killed: exit code {code} (SIGKILL), out of memory?", flush=True)
        print("[warning] continuing without cache", flush=True)
        restarts += 1
    loss = net(torch.randn(8, 20)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
if helper.poll() is None:
    helper.terminate()
print("training complete")
