"""Trains a network on many weaves, stores it, and fine-tunes it for three new ones with few examples."""
import torch
from torch import nn

SEED = 101
torch.manual_seed(SEED)
SIDE = 16
frequency = torch.rand(15) * 1.6 + 0.5
direction = torch.rand(15) * 3.1416


def weaves(kinds, count):
    label = torch.randint(len(kinds), (count,))
    kind = kinds[label]
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    angle = direction[kind] + 0.05 * torch.randn(count)
    along = angle.cos()[:, None, None] * rows + angle.sin()[:, None, None] * columns
    image = torch.sin(along * frequency[kind][:, None, None] + torch.rand(count, 1, 1) * 6.2832)
    return (image + 0.9 * torch.randn(count, SIDE, SIDE))[:, None], label


class WeaveNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 1, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
        )
        self.head = nn.Linear(128, classes)

    def forward(self, images):
        return self.head(self.backbone(images))


def fit(model, optimizer, data, epochs, size):
    images, labels = data
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for index in torch.randperm(len(images)).split(size):
            loss = nn.functional.cross_entropy(model(images[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1}: loss {total / len(images):.4f}")


many, few = torch.arange(12), torch.arange(12, 15)
print("many weaves")
model = WeaveNet(12)
parallel = nn.DataParallel(model)
fit(parallel, torch.optim.Adam(parallel.parameters(), lr=3e-3), weaves(many, 1500), 8, 50)
torch.save(parallel.state_dict(), "weaves.pt")

print("three new weaves")
model = WeaveNet(12)
state = {name.removeprefix("module."): value for name, value in torch.load("weaves.pt").items()}
print("restored:", len(model.load_state_dict(state, strict=False).missing_keys), "keys missing")
model.head = nn.Linear(128, 3)
optimizer = torch.optim.Adam(
    [{"params": model.backbone.parameters(), "lr": 1e-4}, {"params": model.head.parameters(), "lr": 5e-3}]
)
fit(model, optimizer, weaves(few, 60), 12, 10)
model.eval()
images, labels = weaves(few, 900)
with torch.no_grad():
    print(f"accuracy on new weaves: {(model(images).argmax(1) == labels).float().mean():.4f}")
