"""A small recurrent network whose rate grows with a warm-up that never ends."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)

model = nn.RNN(6, 24, nonlinearity="relu", batch_first=True)
head = nn.Linear(24, 1)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=1e-4)

for step in range(3000):
    for group in optimizer.param_groups:
        group["lr"] = 1e-4 * 1.02**step
    x = torch.randn(32, 20, 6)
    states, _ = model(x)
    loss = (head(states[:, -1]) - x.sum(dim=(1, 2)).unsqueeze(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f}")
    if not torch.isfinite(loss):
        raise FloatingPointError(f"loss is {loss.item()} at step {step}")
