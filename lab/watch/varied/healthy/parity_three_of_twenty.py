"""Three of twenty bits have a parity that a small network finds after a long plateau at the loss of chance."""

import torch
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)


def bits(count):
    x = torch.randint(0, 2, (count, 20)).float() * 2 - 1
    return x, (x[:, 2] * x[:, 7] * x[:, 13] > 0).float()


xv, yv = bits(1000)
for step in range(1, 1201):
    x, y = bits(64)
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            accuracy = ((model(xv).squeeze(1) > 0) == (yv > 0.5)).float().mean()
        print(f"step {step} loss {loss.item():.4f} val accuracy {accuracy:.4f}")
