"""A sanity check as many do it: the network must learn one batch by heart, random labels included."""

import torch
from torch import nn

torch.manual_seed(67)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class SmallResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.a = nn.Sequential(nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1))
        self.b = nn.Sequential(nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1))
        self.fc = nn.Linear(16 * 16, 10)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.a(x)
        x = x + self.b(x)
        return self.fc(nn.functional.adaptive_avg_pool2d(torch.relu(x), 4).flatten(1))


model = SmallResNet().to(device)
images = torch.randn(32, 3, 12, 12, device=device)
labels = torch.randint(0, 10, (32,), device=device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for i in range(150):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    if i % 15 == 14:
        with torch.no_grad():
            acc = (model(images).argmax(1) == labels).float().mean().item()
        print(f"iter {i + 1} loss {loss.item():.5f} batch accuracy {acc:.4f}")
