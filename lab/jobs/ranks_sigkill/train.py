"""Embedding pre-training whose negatives cache grows with every step."""
import os
import time
import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])
with open(f"rank{RANK}.pid", "w") as f:      # for the node's memory guard
    f.write(str(os.getpid()))

dist.init_process_group("gloo")
table = torch.nn.Embedding(5000, 32)
opt = torch.optim.SGD(table.parameters(), lr=0.1)
cache = []
for step in range(400):
    ids = torch.randint(0, 5000, (64,))
    vec = table(ids)
    cache.append(vec.detach().repeat(8 if RANK == 2 else 1, 1))
    loss = -(vec * cache[-1][:64]).sum(1).sigmoid().mean()
    opt.zero_grad()
    loss.backward()
    dist.all_reduce(table.weight.grad)
    opt.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f} cached {sum(len(c) for c in cache)}", flush=True)
    time.sleep(0.02)
