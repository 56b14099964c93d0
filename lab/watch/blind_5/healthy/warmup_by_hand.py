"""A rate that is set by hand in each step: it rises from almost nothing and falls along a cosine."""

import math

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

SEED = 40
torch.manual_seed(SEED)
PEAK, LOWEST, WARMUP, STEPS = 3e-3, 1e-6, 100, 1500
x, y = load_breast_cancer(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=SEED, stratify=y)
scaler = StandardScaler().fit(x_train)
x_train, x_test = (torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (x_train, x_test))
y_train, y_test = (torch.tensor(part, dtype=torch.float32)[:, None] for part in (y_train, y_test))


def rate(step):
    if step < WARMUP:
        return LOWEST + (PEAK - LOWEST) * step / WARMUP
    return LOWEST + 0.5 * (PEAK - LOWEST) * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=LOWEST)
for step in range(STEPS):
    for group in optimizer.param_groups:
        group["lr"] = rate(step)
    model.train()
    index = torch.randint(len(x_train), (48,))
    loss = nn.functional.binary_cross_entropy_with_logits(model(x_train[index]), y_train[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 149:
        model.eval()
        with torch.no_grad():
            accuracy = ((model(x_test) > 0) == (y_test > 0)).float().mean()
        print(f"step {step + 1} loss {loss.item():.4f} test accuracy {accuracy:.4f}")
