"""An encoder learned on many clean digits is moved to few noisy ones at a very small learning rate."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(137)
digits = load_digits()
x = torch.tensor(digits.images / 16.0, dtype=torch.float32)[:, None]
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
many, few, test = order[:1100], order[1100:1300], order[1300:]
noisy = (1 - x) * 0.8 + 0.2 + 0.15 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 48, 3, padding=1), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(768, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.head(self.body(x))


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x):
        return self.encoder(1 - x)


def fit(model, images, rows, lr, epochs, name):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for epoch in range(epochs):
        for part in rows[torch.randperm(len(rows))].split(20):
            loss = F.cross_entropy(model(images[part]), y[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 3:
            print(f"{name} epoch {epoch + 1} loss {loss.item():.4f}")


pretrained = Encoder()
fit(pretrained, x, many, 2e-3, 4, "clean")
torch.save(pretrained.state_dict(), "encoder.pt")

model = Wrapped()
state = torch.load("encoder.pt")
model.load_state_dict({f"encoder.{name}": value for name, value in state.items()}, strict=False)
fit(model, noisy, few, 3e-5, 16, "noisy")
with torch.no_grad():
    print(f"noisy accuracy {(model(noisy[test]).argmax(1) == y[test]).float().mean().item():.4f}")
