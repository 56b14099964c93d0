"""Local SGD on three ranks: each takes four steps of its own, then the parameters of all are averaged."""

import torch
import torch.distributed as dist
from torch import nn

LOCAL_STEPS = 4

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(21)
centers = 1.5 * torch.randn(6, 20)
labels = torch.randint(0, 6, (3600,))
inputs = centers[labels] + torch.randn(3600, 20)
held, held_labels = inputs[3000:], labels[3000:]
mine, my_labels = inputs[rank:3000:world], labels[rank:3000:world]

model = nn.Sequential(
    nn.Linear(20, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 6)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def average(model):
    with torch.no_grad():
        for parameter in model.parameters():
            dist.all_reduce(parameter.data)
            parameter.div_(world)


torch.manual_seed(500 + rank)
for step in range(1, 201):
    batch = torch.randint(0, len(mine), (32,))
    loss = nn.functional.cross_entropy(model(mine[batch]), my_labels[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % LOCAL_STEPS == 0:
        average(model)
    if step % 40 == 0:
        with torch.no_grad():
            correct = (model(held).argmax(1) == held_labels).float().mean()
        if rank == 0:
            print(f"step {step} loss {loss.item():.3f} val accuracy {correct.item():.3f}")
dist.destroy_process_group()
