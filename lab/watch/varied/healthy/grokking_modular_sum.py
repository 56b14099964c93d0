"""Sums modulo 23: the training data are known by heart long before the network generalizes."""

import torch
from torch import nn

torch.manual_seed(4)
torch.set_num_threads(1)
P = 23
pairs = torch.cartesian_prod(torch.arange(P), torch.arange(P))
sums = (pairs[:, 0] + pairs[:, 1]) % P
order = torch.randperm(len(pairs))
train, test = order[: int(0.6 * len(order))], order[int(0.6 * len(order)) :]


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.numbers = nn.Embedding(P, 48)
        self.body = nn.Sequential(nn.Linear(96, 128), nn.ReLU(), nn.Linear(128, P))

    def forward(self, x):
        return self.body(self.numbers(x).flatten(1))


model = Adder()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1.0, betas=(0.9, 0.98))
for step in range(1, 2501):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(pairs[train]), sums[train])
    loss.backward()
    optimizer.step()
    if step % 250 == 0:
        with torch.no_grad():
            output = model(pairs[test])
            accuracy = (output.argmax(1) == sums[test]).float().mean()
            test_loss = nn.functional.cross_entropy(output, sums[test])
        print(f"step {step} loss {loss.item():.4f} test loss {test_loss:.3f} test accuracy {accuracy:.4f}")
