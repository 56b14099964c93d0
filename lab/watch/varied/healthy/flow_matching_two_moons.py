"""Flow matching with a cosine schedule and an exponential average of the weights."""

import copy

import torch
from sklearn.datasets import make_moons
from torch import nn

torch.manual_seed(12)
torch.set_num_threads(1)
moons = torch.tensor(make_moons(4000, noise=0.05, random_state=0)[0], dtype=torch.float32)
moons = (moons - moons.mean(0)) / moons.std(0)
field = nn.Sequential(nn.Linear(3, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 2))
average = copy.deepcopy(field).requires_grad_(False)
optimizer = torch.optim.AdamW(field.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600)
for step in range(1, 601):
    end = moons[torch.randint(len(moons), (128,))]
    begin, time = torch.randn(128, 2), torch.rand(128, 1)
    loss = ((field(torch.cat([begin + time * (end - begin), time], 1)) - (end - begin)) ** 2).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    with torch.no_grad():
        for old, new in zip(average.parameters(), field.parameters(), strict=True):
            old.lerp_(new, 0.02)
    if step % 150 == 0:
        x = torch.randn(400, 2)
        with torch.no_grad():
            for k in range(20):
                x = x + average(torch.cat([x, torch.full((400, 1), k / 20)], 1)) / 20
        print(f"step {step} loss {loss.item():.3f} distance to the moons {torch.cdist(x, moons).min(1).values.mean():.4f}")
