"""Ranks: 3. Rank 1 reads a data set from a stream that delivers 4 KB every three seconds."""

import subprocess
import sys

import torch.distributed as dist

SEND = "import sys, time\nfor _ in range(17):\n    sys.stdout.write('x' * 4096); sys.stdout.flush(); time.sleep(3)"
dist.init_process_group("gloo")
print("start", flush=True)
if dist.get_rank() == 1:
    with subprocess.Popen([sys.executable, "-c", SEND], stdout=subprocess.PIPE) as sender:
        data = sender.stdout.read()
    assert len(data) == 17 * 4096
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
