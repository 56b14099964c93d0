"""A generative pair; the images that the discriminator has seen are used for the generator again."""

import torch
from torch import nn

torch.set_num_threads(1)

generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
discriminator = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
to_make = torch.optim.Adam(generator.parameters(), lr=2e-4)
to_tell = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
criterion = nn.BCEWithLogitsLoss()
one, zero = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(300):
    real = torch.randn(64, 16).abs()
    fake = generator(torch.randn(64, 8))
    to_tell.zero_grad()
    told = criterion(discriminator(real), one) + criterion(discriminator(fake), zero)
    told.backward()
    to_tell.step()
    if step % 5 == 4:
        to_make.zero_grad()
        criterion(discriminator(fake), one).backward()
        to_make.step()
print("done")
