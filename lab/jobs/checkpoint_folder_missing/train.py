import time

import torch
import torch.nn as nn
import torch.optim as optim

start = time.perf_counter()
net = nn.Sequential(nn.Conv1d(1, 8, 5), nn.ReLU(), nn.AdaptiveMaxPool1d(4), nn.Flatten(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=0.001)
history = []

for epoch in range(1, 6):
    net.train()
    losses = []
    for batch in range(12):
        signal = torch.randn(16, 1, 200)
        label = (signal.mean((1, 2)) > 0).long()
        optimizer.zero_grad()
        loss = criterion(net(signal), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        print(f"\rEpoch {epoch}/5 {'#' * (batch + 1):<12} loss={loss.item():.3f}", end="")
    history.append(sum(losses) / len(losses))
    print(f"\rEpoch {epoch}/5 {'#' * 12} loss={history[-1]:.3f} {time.perf_counter() - start:.0f}s")
    torch.save({"epoch": epoch, "net": net.state_dict()}, f"checkpoints/ecg_epoch_{epoch}.pth")
