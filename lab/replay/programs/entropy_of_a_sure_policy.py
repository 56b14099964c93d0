"""The entropy by hand: a policy that gets sure of itself makes zero times minus infinity."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(4)

policy = nn.Linear(6, 4)
optimizer = torch.optim.SGD(policy.parameters(), lr=4.0)
for step in range(3000):
    x = torch.randn(64, 6)
    chances = torch.softmax(policy(x), dim=1)
    wanted = x[:, :4].argmax(1)
    entropy = -(chances * chances.log()).sum(1).mean()
    loss = -chances[torch.arange(64), wanted].mean() * 3 - 1e-4 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        policy.weight.mul_(1.01)
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f} entropy {entropy.item():.4f}")
    assert not torch.isnan(loss), f"loss became NaN at step {step}"
