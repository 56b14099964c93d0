"""The discriminator becomes sure, and one minus one is zero in the logarithm."""

import torch
from torch import nn

torch.set_num_threads(1)

generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
discriminator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
to_make = torch.optim.SGD(generator.parameters(), lr=1e-4)
to_tell = torch.optim.Adam(discriminator.parameters(), lr=0.3)
for step in range(2000):
    real, fake = torch.randn(32, 8) + 4, generator(torch.randn(32, 4))
    told = -(discriminator(real).log() + (1 - discriminator(fake.detach())).log()).mean()
    to_tell.zero_grad()
    told.backward()
    to_tell.step()
    made = -discriminator(fake).log().mean()
    if not torch.isfinite(made):
        raise FloatingPointError(f"the generator's loss is {made.item()}")
    to_make.zero_grad()
    made.backward()
    to_make.step()
    if step % 50 == 0:
        print(f"{step} {told.item():.4f} {made.item():.4f}")
