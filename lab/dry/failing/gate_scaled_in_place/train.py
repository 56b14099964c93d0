"""A network with squeeze and excitation for spectrograms."""
import torch
from torch import nn

from layers import SqueezeExcite


def network(classes=8):
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2),
        nn.ReLU(),
        SqueezeExcite(16),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        SqueezeExcite(32),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, classes),
    )


def main():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-4)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=20)
    for step in range(200):
        spectrograms = torch.randn(16, 1, 32, 40)
        labels = torch.randint(0, 8, (16,))
        loss = nn.functional.cross_entropy(model(spectrograms), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warmup.step()
        if step % 50 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    main()
