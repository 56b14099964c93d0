"""A convolutional network trained on one texture task is moved to another with SGD at 1e-3 and a frozen first block."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
torch.set_num_threads(1)


def stripes(count, classes, shift):
    labels = torch.randint(classes, (count,))
    angle = (labels.float() + shift) * torch.pi / classes
    grid = torch.linspace(-1, 1, 12)
    rows, columns = torch.meshgrid(grid, grid, indexing="ij")
    wave = (angle.cos()[:, None, None] * rows + angle.sin()[:, None, None] * columns) * 8
    return (wave + torch.rand(count, 1, 1) * 6).sin().unsqueeze(1) + 0.3 * torch.randn(count, 1, 12, 12), labels


stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
body = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
model = nn.Sequential(stem, body, nn.Linear(128, 4))


def fit(epochs, optimizer, data, test):
    for epoch in range(epochs):
        model.train()
        for x, y in DataLoader(TensorDataset(*data), batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(test[0]).argmax(1) == test[1]).float().mean().item()
        print(f"epoch {epoch} val accuracy {accuracy:.4f}")


fit(3, torch.optim.Adam(model.parameters(), lr=2e-3), stripes(1200, 4, 0.0), stripes(300, 4, 0.0))
model[2] = nn.Linear(128, 4)
for parameter in stem.parameters():
    parameter.requires_grad_(False)
trained = [p for p in model.parameters() if p.requires_grad]
fit(8, torch.optim.SGD(trained, lr=1e-3, momentum=0.9), stripes(1600, 4, 0.5), stripes(400, 4, 0.5))
