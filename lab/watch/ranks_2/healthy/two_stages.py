"""A model in two stages, one on each rank: activations go forward, their gradients come back."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(61)
waves = torch.randint(0, 4, (1200,))
time = torch.linspace(0, 1, 64)
frequency = (waves + 2).unsqueeze(1)
phase = 6.28 * torch.rand(1200, 1)
signals = torch.sin(6.28 * frequency * time + phase) + 0.9 * torch.randn(1200, 64)

if rank == 0:
    stage = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
else:
    stage = nn.Sequential(nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 4))
optimizer = torch.optim.Adam(stage.parameters(), lr=2e-3)
generator = torch.Generator().manual_seed(80)


def batches(size):
    return torch.randperm(1000, generator=generator).split(size)


for epoch in range(7):
    for batch in batches(25):
        optimizer.zero_grad()
        if rank == 0:
            hidden = stage(signals[batch])
            dist.send(hidden.detach(), dst=1)
            received = torch.empty_like(hidden)
            dist.recv(received, src=1)
            hidden.backward(received)
        else:
            hidden = torch.empty(len(batch), 48)
            dist.recv(hidden, src=0)
            hidden.requires_grad_()
            loss = nn.functional.cross_entropy(stage(hidden), waves[batch])
            loss.backward()
            dist.send(hidden.grad, dst=0)
        optimizer.step()
    with torch.no_grad():
        if rank == 0:
            dist.send(stage(signals[1000:]), dst=1)
        else:
            hidden = torch.empty(200, 48)
            dist.recv(hidden, src=0)
            correct = (stage(hidden).argmax(1) == waves[1000:]).float().mean()
            print(f"epoch {epoch} loss {loss.item():.3f} val accuracy {correct.item():.3f}")
dist.destroy_process_group()
