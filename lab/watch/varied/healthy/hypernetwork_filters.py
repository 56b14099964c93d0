"""A small network makes the weights of another one for each task; the second is called through torch.func."""

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(22)
torch.set_num_threads(1)
inner = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
shapes = {name: p.shape for name, p in inner.named_parameters()}
sizes = [p.numel() for p in inner.parameters()]
maker = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, sum(sizes)))
optimizer = torch.optim.Adam(maker.parameters(), lr=1e-3)
x = torch.linspace(-2, 2, 40)[:, None]
average = None
for step in range(1, 601):
    losses = []
    for _ in range(4):
        task = torch.rand(2) * 2 - 1
        made = maker(task).split(sizes)
        weights = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), made, strict=True)}
        wanted = torch.sin(2 * x + task[0] * 2) * (1 + task[1] / 2)
        losses.append(nn.functional.mse_loss(functional_call(inner, weights, (x,)), wanted))
    loss = torch.stack(losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average = loss.item() if average is None else 0.97 * average + 0.03 * loss.item()
    if step % 150 == 0:
        print(f"step {step} running error {average:.4f}")
