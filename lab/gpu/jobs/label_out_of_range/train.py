import torch
from torch import nn

CLASSES = 10


def batches():
    generator = torch.Generator().manual_seed(0)
    for number in range(20):
        images = torch.randn(64, 3, 32, 32, generator=generator)
        labels = torch.randint(0, CLASSES, (64,), generator=generator)
        if number == 7:
            labels[5] = CLASSES
        yield images, labels


def main():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, CLASSES)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (images, labels) in enumerate(batches()):
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


main()
