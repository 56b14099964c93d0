"""A watchdog prints all stacks when a step is slow; the job itself is fine."""
import faulthandler
import sys
import time
import traceback

import torch

print("watchdog: stacks are printed if a step takes more than 1 second", flush=True)
net = torch.nn.Linear(30, 30)
for step in range(5):
    faulthandler.dump_traceback_later(1, exit=False)
    loss = net(torch.randn(10, 30)).pow(2).mean()
    loss.backward()
    if step == 2:
        print("step 2 writes a large checkpoint", flush=True)
        time.sleep(1.6)
    faulthandler.cancel_dump_traceback_later()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
print("debug: where the loss was computed", file=sys.stderr, flush=True)
traceback.print_stack()
print("ok", flush=True)
