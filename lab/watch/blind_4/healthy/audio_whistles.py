"""Classifies whistles by their spectrograms with a small convolutional network; validated before and after each epoch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(41)
RATE, LENGTH = 2000, 1024


def whistles(count):
    kind = torch.randint(0, 5, (count,))
    t = torch.arange(LENGTH) / RATE
    low = 200 + 200 * torch.rand(count, 1)
    bend = torch.tensor([0.0, 400.0, -150.0, 0.0, 0.0])[kind][:, None]
    wobble = torch.tensor([0.0, 0.0, 0.0, 3.0, 0.0])[kind][:, None]
    phase = 2 * torch.pi * (low * t + bend * t**2 / 2) + wobble * torch.sin(2 * torch.pi * 8 * t)
    gate = torch.where(kind[:, None] == 4, (torch.sin(2 * torch.pi * 10 * t) > 0).float(), torch.ones(LENGTH))
    sound = gate * torch.sin(phase) + 0.9 * torch.randn(count, LENGTH)
    window = torch.hann_window(128)
    spectrum = torch.stft(sound, 128, 64, window=window, return_complex=True).abs()
    return TensorDataset(20 * torch.log10(spectrum + 1e-4)[:, None], kind)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.BatchNorm2d(1),
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 24, 3, stride=2, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
        )
        self.classify = nn.Sequential(nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Dropout(0.3), nn.Linear(216, 5))

    def forward(self, x):
        return self.classify(self.features(x))


def validate(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
train = DataLoader(whistles(1000), batch_size=32, shuffle=True)
held = DataLoader(whistles(400), batch_size=200)
print(f"untrained accuracy {validate(model, held):.4f}")

for epoch in range(6):
    model.train()
    for x, y in train:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1} loss {loss.item():.4f} accuracy {validate(model, held):.4f}")
