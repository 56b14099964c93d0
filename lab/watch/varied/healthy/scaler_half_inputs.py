"""A gradient scaler on a CPU, where it is switched off, with bfloat16 inside and clipping after unscaling."""

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

torch.manual_seed(30)
torch.set_num_threads(1)
cancer = load_breast_cancer()
x = torch.tensor(cancer.data, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
y = torch.tensor(cancer.target, dtype=torch.float32)
order = torch.randperm(len(x))
train, test = order[:400], order[400:]
model = nn.Sequential(nn.Linear(30, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())
for epoch in range(12):
    for rows in train[torch.randperm(len(train))].split(20):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]).squeeze(1).float(), y[rows])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    with torch.no_grad():
        accuracy = ((model(x[test]).squeeze(1) > 0) == (y[test] > 0.5)).float().mean()
    print(f"epoch {epoch} loss {loss.item():.3f} test accuracy {accuracy:.4f}")
