"""Adapts a digit classifier to a scanner that turns and inverts its pages, with low-rank updates written by hand."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

SEED = 61
torch.manual_seed(SEED)
digits = load_digits()
order = torch.randperm(len(digits.target))
images = torch.tensor(digits.images / 16, dtype=torch.float32)[order]
labels = torch.tensor(digits.target)[order]
first = images.flatten(1)
second = (1 - images.transpose(1, 2)).flip(2).flatten(1)


class LowRank(nn.Module):
    """A frozen linear layer and a trained update of its weight."""

    def __init__(self, linear, rank=8, alpha=16):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + self.scale * F.linear(F.linear(x, self.down), self.up)


def adapt(model, rank):
    for name, child in list(model.named_children()):
        if isinstance(child, nn.Linear):
            setattr(model, name, LowRank(child, rank))
        else:
            adapt(child, rank)
    return model


def fit(model, inputs, epochs, lr):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    print(f"{sum(parameter.numel() for parameter in trained)} trained parameters")
    optimizer = torch.optim.Adam(trained, lr=lr)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for index in torch.randperm(1300).split(25):
            loss = F.cross_entropy(model(inputs[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        model.eval()
        with torch.no_grad():
            accuracy = (model(inputs[1300:]).argmax(1) == labels[1300:]).float().mean()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: loss {total / 1300:.4f}, accuracy {accuracy:.4f}")


model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
print("first scanner")
fit(model, first, 12, 2e-3)
print("second scanner")
fit(adapt(model, rank=8), second, 24, 3e-3)
