"""A Cox model with a network: which pumps fail sooner; many are still running at the end of the study."""
import torch
from torch import nn

SEED = 107
torch.manual_seed(SEED)


def pumps(count):
    x = torch.randn(count, 8)
    risk = 1.2 * x[:, 0] * x[:, 1] + x[:, 2].abs() + 0.7 * x[:, 3]
    failure = -torch.log(torch.rand(count)) * torch.exp(-risk) * 10
    end = torch.rand(count) * 25
    return x, torch.minimum(failure, end), (failure <= end).float()


def partial_likelihood(risk, time, failed):
    """For each failure, its risk against those of all that still ran at that time."""
    order = torch.argsort(time, descending=True)
    risk, failed = risk[order], failed[order]
    running = torch.logcumsumexp(risk, 0)
    return -((risk - running) * failed).sum() / failed.sum()


def concordance(risk, time, failed):
    sooner = (time[:, None] < time[None]) & (failed[:, None] > 0)
    right = (risk[:, None] > risk[None]).float() + 0.5 * (risk[:, None] == risk[None]).float()
    return (right * sooner).sum() / sooner.sum()


x, time, failed = pumps(2000)
test = pumps(800)
print(f"{int(failed.sum())} of {len(x)} pumps failed")
model = nn.Sequential(nn.Linear(8, 64), nn.SELU(), nn.Linear(64, 64), nn.SELU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
for epoch in range(30):
    model.train()
    total = 0.0
    for index in torch.randperm(len(x)).split(100):
        loss = partial_likelihood(model(x[index]).squeeze(1), time[index], failed[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            index = concordance(model(test[0]).squeeze(1), *test[1:])
        print(f"epoch {epoch + 1}: loss {total / 20:.4f}, concordance {index:.4f}")
