"""Eight small networks trained at once with torch.func: stacked parameters, one loss, one optimizer that holds no module.

Should reach: val R2 of the mean answer of at least 0.8; the mean target gives 0.
"""
import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

torch.set_num_threads(1)
torch.manual_seed(60)
x, y = make_friedman1(1400, noise=1.0, random_state=60)
x, y = torch.tensor(x).float() * 2 - 1, torch.tensor(y).float()
x_train, y_train, x_val, y_val = x[:1000], y[:1000], x[1000:], y[1000:]
mean, std = y_train.mean(), y_train.std()


def member():
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))


members = [member() for _ in range(8)]
base = member().to("meta")
parameters, buffers = stack_module_state(members)


def answer(parameters, buffers, inputs):
    return functional_call(base, (parameters, buffers), (inputs,)).squeeze(1)


optimizer = torch.optim.AdamW(parameters.values(), lr=3e-3, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 25)
for epoch in range(25):
    orders = torch.stack([torch.randperm(1000) for _ in members])
    for start in range(0, 1000, 50):
        rows = orders[:, start : start + 50]
        predicted = vmap(answer)(parameters, buffers, x_train[rows])
        loss = (predicted - (y_train[rows] - mean) / std).pow(2).mean(1).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    with torch.no_grad():
        answers = vmap(answer, in_dims=(0, 0, None))(parameters, buffers, x_val) * std + mean
    r2 = 1 - (answers.mean(0) - y_val).pow(2).mean() / y_val.var()
    print(f"epoch {epoch + 1} loss {loss.item() / 8:.4f} spread {answers.std(0).mean():.3f} val R2 {r2:.4f}")
