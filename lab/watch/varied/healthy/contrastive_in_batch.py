"""Two views of each example find one another in the batch: the loss begins above chance and its labels are row numbers."""

import torch
from torch import nn

torch.manual_seed(13)
torch.set_num_threads(1)
mixing = torch.randn(6, 40)
encoder = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)


def views(count):
    source = torch.randn(count, 6)
    return [source @ mixing + 1.0 * torch.randn(count, 40) for _ in range(2)]


for step in range(1, 401):
    first, second = (nn.functional.normalize(encoder(view), dim=1) for view in views(64))
    loss = nn.functional.cross_entropy(first @ second.T / 0.1, torch.arange(64))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            a, b = (nn.functional.normalize(encoder(view), dim=1) for view in views(200))
            top = ((a @ b.T).argmax(1) == torch.arange(200)).float().mean()
        print(f"step {step} loss {loss.item():.3f} found {top:.4f}")
