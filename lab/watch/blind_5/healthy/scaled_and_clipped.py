"""Automatic mixed precision with a gradient scaler and clipping: scanned digits."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset

SEED = 2
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x / 16, y, test_size=400, random_state=SEED, stratify=y)
train = TensorDataset(torch.tensor(x_train, dtype=torch.float32), torch.tensor(y_train))
x_test, y_test = torch.tensor(x_test, dtype=torch.float32), torch.tensor(y_test)
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 64), nn.GELU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = GradScaler("cpu")
loader = DataLoader(train, batch_size=64, shuffle=True)

for epoch in range(14):
    model.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        with autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch + 1}: loss {loss.item():.4f}, accuracy {accuracy:.4f}")
