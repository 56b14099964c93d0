"""A GAN that draws points of a bent cloud; generator and discriminator have their own Adam.

Both losses hover around log 2 and 2 log 2 and do not fall: that is their balance.
Should reach: distance between drawn and real points (sliced Wasserstein) below 0.15 (after 100 steps: about 0.5).
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(10)
torch.set_num_threads(1)


def real_points(count):
    a = torch.randn(count)
    return torch.stack([a, 0.6 * a**2 - 0.6 + 0.2 * torch.randn(count)], 1)


def sliced_distance(a, b, directions=64):
    generator = torch.Generator().manual_seed(0)
    axes = F.normalize(torch.randn(2, directions, generator=generator), dim=0)
    return ((a @ axes).sort(0).values - (b @ axes).sort(0).values).abs().mean().item()


def network(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, outputs)
    )


generator, discriminator = network(4, 2), network(2, 1)
g_optimizer = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.99))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.99))
average = torch.optim.swa_utils.AveragedModel(generator, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.995))
reference = real_points(2000)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(128, 1), torch.zeros(128, 1)

for step in range(1, 1001):
    real = real_points(128)
    fake = generator(torch.randn(128, 4))

    d_optimizer.zero_grad()
    d_loss = bce(discriminator(real), ones) + bce(discriminator(fake.detach()), zeros)
    d_loss.backward()
    d_optimizer.step()

    g_optimizer.zero_grad()
    g_loss = bce(discriminator(fake), ones)
    g_loss.backward()
    g_optimizer.step()
    average.update_parameters(generator)

    if step % 100 == 0:
        with torch.no_grad():
            drawn = average(torch.randn(2000, 4))
        print(
            f"step {step:4d}  d_loss {d_loss.item():.3f}  g_loss {g_loss.item():.3f}  "
            f"distance {sliced_distance(drawn, reference):.4f}"
        )
