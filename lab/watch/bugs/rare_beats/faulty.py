"""Heartbeats: normal ones, early ones, and rarely a dangerous one."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(15)
torch.set_num_threads(1)

TIME = torch.linspace(0, 1, 48)


def bump(center, width, height):
    return height * torch.exp(-((TIME - center) ** 2) / (2 * width**2))


def beats(count):
    kinds = torch.multinomial(torch.tensor([0.75, 0.20, 0.05]), count, replacement=True)
    signals = torch.empty(count, 1, 48)
    for i, kind in enumerate(kinds.tolist()):
        shift = 0.04 * torch.randn(1).item()
        signals[i, 0] = {
            0: bump(0.5 + shift, 0.03, 1.0) + bump(0.75 + shift, 0.06, 0.3),
            1: bump(0.35 + shift, 0.03, 1.0) + bump(0.6 + shift, 0.06, 0.3),
            2: bump(0.5 + shift, 0.09, 1.0) - bump(0.8 + shift, 0.06, 0.3),
        }[kind]
    return signals + 0.15 * torch.randn(count, 1, 48), kinds


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 12, 7, padding=3)
        self.conv2 = nn.Conv1d(12, 24, 5, padding=2)
        self.pool = nn.MaxPool1d(4)
        self.fc = nn.Linear(24 * 3, 3)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc(x.flatten(1))


signals, kinds = beats(1600)
counts = torch.bincount(kinds)
weights = (counts.min() // counts)[kinds]
train_loader = DataLoader(TensorDataset(signals, kinds, weights), batch_size=16, shuffle=True)
test_signals, test_kinds = beats(600)

net = BeatNet()
loss_function = nn.CrossEntropyLoss(reduction="none")
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(10):
    net.train()
    sum_of_losses = 0.0
    for x, y, w in train_loader:
        loss = (w * loss_function(net(x), y)).sum() / w.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sum_of_losses += loss.item()
    net.eval()
    with torch.no_grad():
        predicted = net(test_signals).argmax(1)
    recall = [(predicted[test_kinds == k] == k).float().mean().item() for k in range(3)]
    print(
        f"epoch {epoch + 1} loss {sum_of_losses / len(train_loader):.4f} "
        f"balanced accuracy {sum(recall) / 3:.3f}"
    )
