"""Trains on few recordings with Accelerate; gradients of several small batches make one step."""
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 109
BATCH, TOGETHER, EPOCHS = 10, 4, 40
set_seed(SEED)
shapes = torch.randn(5, 4, 24)


def recordings(count):
    label = torch.randint(5, (count,))
    shift = torch.randint(-3, 4, (count,)).tolist()
    signal = torch.stack([shapes[kind].roll(by, -1) for kind, by in zip(label.tolist(), shift)])
    return TensorDataset(signal + 0.8 * torch.randn(count, 4, 24), label)


accelerator = Accelerator(cpu=True)
model = nn.Sequential(
    nn.Conv1d(4, 24, 5, padding=2), nn.ReLU(), nn.Conv1d(24, 32, 5, padding=2), nn.ReLU(),
    nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(128, 5),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
train, test = DataLoader(recordings(120), BATCH, shuffle=True), DataLoader(recordings(500), 100)
model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for number, (signal, label) in enumerate(train, 1):
        loss = nn.functional.cross_entropy(model(signal), label)
        accelerator.backward(loss / TOGETHER)
        total += loss.item()
        if number % TOGETHER == 0:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    if epoch % 8 == 7:
        model.eval()
        right = count = 0
        with torch.no_grad():
            for signal, label in test:
                found, label = accelerator.gather_for_metrics((model(signal).argmax(1), label))
                right += (found == label).sum().item()
                count += len(label)
        accelerator.print(f"epoch {epoch + 1}: loss {total / len(train):.4f}, test accuracy {right / count:.4f}")
