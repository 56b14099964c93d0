"""Model and training step are compiled, here with the eager backend; the step calls backward inside."""

import torch
from torch import nn

torch.manual_seed(23)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
compiled = torch.compile(model, backend="eager")
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
truth = torch.randn(10, 3)


def batch(count):
    x = torch.randn(count, 10)
    return x, (x @ truth).argmax(1)


for step in range(1, 301):
    x, y = batch(32)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(compiled(x), y)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            x, y = batch(500)
            print(f"step {step} loss {loss.item():.3f} val accuracy {(compiled(x).argmax(1) == y).float().mean():.4f}")
