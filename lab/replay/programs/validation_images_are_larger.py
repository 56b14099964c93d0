"""Trains on crops; the validation images were never cropped."""

import torch
from torch import nn

torch.set_num_threads(1)

model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(8 * 8 * 8, 4)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images, labels = torch.randn(320, 3, 32, 32), torch.randint(4, (320,))
validation, wanted = torch.randn(40, 3, 48, 48), torch.randint(4, (40,))


def evaluate():
    model.eval()
    with torch.no_grad():
        return (model(validation).argmax(1) == wanted).float().mean()


for epoch in range(3):
    model.train()
    for rows in torch.randperm(320).split(16):
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
    print(f"accuracy {evaluate():.3f}")
