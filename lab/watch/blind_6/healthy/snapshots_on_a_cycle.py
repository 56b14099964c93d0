"""An ensemble from one training: the rate falls to zero and starts again five times, and each valley is kept."""
import copy

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 167
CYCLES, EPOCHS = 5, 5
torch.manual_seed(SEED)
digits = load_digits()
order = torch.randperm(len(digits.target))
x = torch.tensor(digits.data / 16, dtype=torch.float32)[order]
y = torch.tensor(digits.target)[order]
train_x, train_y, test_x, test_y = x[:800], y[:800], x[800:], y[800:]

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
steps = EPOCHS * 20
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=steps)
kept = []
for epoch in range(CYCLES * EPOCHS):
    model.train()
    total = 0.0
    for index in torch.randperm(len(train_x)).split(40):
        loss = nn.functional.cross_entropy(model(train_x[index]), train_y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item() * len(index)
    if epoch % EPOCHS == EPOCHS - 1:
        kept.append(copy.deepcopy(model).eval())
        with torch.no_grad():
            shares = torch.stack([member(test_x).softmax(1) for member in kept])
        single = (shares[-1].argmax(1) == test_y).float().mean()
        together = (shares.mean(0).argmax(1) == test_y).float().mean()
        print(f"cycle {len(kept)}: loss {total / len(train_x):.4f}, single {single:.4f}, test accuracy {together:.4f}")
