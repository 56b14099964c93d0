"""Crops of a random size; a few images are narrower than the largest crop."""

import random

import torch
from torch import nn

torch.set_num_threads(1)

images = [torch.rand(3, 24 + n % 17, 24 + n % 13) for n in range(300)]


def crop(image):
    size = random.randint(12, 26)
    top = random.randrange(image.shape[1] - size)
    left = random.randrange(image.shape[2] - size)
    return nn.functional.interpolate(image[None, :, top : top + size, left : left + size], (16, 16))


model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2000):
    batch = torch.cat([crop(random.choice(images)) for _ in range(4)])
    loss = (model(batch) - batch.mean(dim=(1, 2, 3))[:, None]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
