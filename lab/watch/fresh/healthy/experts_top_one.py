"""A mixture of experts: a gate sends each example to one of four networks, a second term keeps them equally busy.

Should reach: val R2 of at least 0.75; the mean gives 0.
"""
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(47)
laws = [lambda x: x[:, 0] * 2, lambda x: -x[:, 1] ** 2 + 1, lambda x: torch.sin(3 * x[:, 2]), lambda x: x[:, 0] * x[:, 3]]


def regimes(count):
    x = torch.randn(count, 8)
    regime = (x[:, 6] > 0).long() * 2 + (x[:, 7] > 0).long()
    y = torch.stack([law(x) for law in laws], 1).gather(1, regime[:, None]).squeeze(1)
    return x, y + 0.05 * torch.randn(count)


class Experts(nn.Module):
    def __init__(self, count=4):
        super().__init__()
        self.gate = nn.Linear(8, count)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 1)) for _ in range(count))

    def forward(self, x):
        probability = self.gate(x).softmax(1)
        weight, chosen = probability.max(1)
        y = torch.zeros(len(x))
        for number, expert in enumerate(self.experts):
            mine = (chosen == number).nonzero().squeeze(1)
            if len(mine):
                y = y.index_add(0, mine, weight[mine] * expert(x[mine]).squeeze(1))
        load = F.one_hot(chosen, len(self.experts)).float().mean(0)
        balance = len(self.experts) * (load * probability.mean(0)).sum()
        return y, balance, load


x, y = regimes(6000)
x_val, y_val = regimes(1500)
model = Experts()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=20 * 60)
for epoch in range(20):
    model.train()
    for rows in torch.randperm(len(x)).split(100):
        predicted, balance, _ = model(x[rows])
        loss = F.mse_loss(predicted, y[rows]) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        predicted, _, load = model(x_val)
        error = F.mse_loss(predicted, y_val)
    print(f"epoch {epoch + 1} loss {loss.item():.4f} load {[round(v, 2) for v in load.tolist()]} val R2 {1 - error / y_val.var():.4f}")
