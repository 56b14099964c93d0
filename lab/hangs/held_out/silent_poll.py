"""Both ranks look every few seconds for a file that another job writes."""

import os
import subprocess
import sys
import time

import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
ready = f"/tmp/epochzero-lab-{os.environ['MASTER_PORT']}-ready"
print("start", flush=True)
if rank == 0:
    subprocess.Popen([sys.executable, "-c", f"import time; time.sleep(50); open({ready!r}, 'w')"])
while not os.path.exists(ready):
    time.sleep(2)
dist.barrier()
if rank == 0:
    os.unlink(ready)
print("done", flush=True)
dist.destroy_process_group()
