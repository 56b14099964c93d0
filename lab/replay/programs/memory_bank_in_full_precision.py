"""Mixed precision: what the model gives is bfloat16, the bank that it is kept in is not."""

import torch
from torch import nn

torch.set_num_threads(1)

encoder = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16))
bank = torch.zeros(1000, 16)
optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
for step in range(300):
    rows = torch.randint(1000, (32,))
    x = torch.randn(32, 20)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = encoder(x)
        loss = (found - encoder(x + 0.1 * torch.randn_like(x))).float().pow(2).mean()
    if step >= 100:
        bank[rows] = found.detach()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"{step}: {loss.item():.4f}")
