import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
goal = torch.tensor([[1.0], [-2.0], [0.5], [3.0]])
for step in range(5000):
    x = torch.randn(64, 4)
    loss = (model(x) - x @ goal).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if loss.item() < 1e-3:
        best = copy.deepcopy(model.state_dict())
        reached = step
model.load_state_dict(best)
print("reached at", reached)
assert model.weight.sub(goal.T).abs().max() < 0.2, "it has not converged"
