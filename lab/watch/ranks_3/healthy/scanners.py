"""Blobs in scans of three scanners, a scanner per rank. Batch statistics and gradients are shared by hand."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

SEED = 380
SIDE, BATCH = 16, 16


class Total(torch.autograd.Function):
    """The sum over the ranks, of values and of their gradients."""

    @staticmethod
    def forward(ctx, values):
        values = values.clone()
        dist.all_reduce(values)
        return values

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


class SharedNorm(nn.Module):
    def __init__(self, channels, momentum=0.1):
        super().__init__()
        self.weight, self.bias = (
            nn.Parameter(torch.ones(channels)),
            nn.Parameter(torch.zeros(channels)),
        )
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))
        self.momentum = momentum

    def forward(self, x):
        mean, variance = self.mean, self.variance
        if self.training:
            own = torch.stack([x.mean((0, 2, 3)), x.square().mean((0, 2, 3))])
            mean, square = Total.apply(own) / dist.get_world_size()
            variance = square - mean.square()
            self.mean.lerp_(mean.detach(), self.momentum)
            self.variance.lerp_(variance.detach(), self.momentum)
        scale = self.weight * (variance + 1e-5).rsqrt()
        return x * scale[:, None, None] + (self.bias - mean * scale)[:, None, None]


def layer(before, after):
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), SharedNorm(after), nn.ReLU())


class Segmenter(nn.Sequential):
    def __init__(self, width=8):
        super().__init__(
            layer(1, width), layer(width, width), layer(width, width), nn.Conv2d(width, 1, 1)
        )


def scans(count, scanner, generator):
    """Noisy scans with a few blobs. The scanners differ in brightness and contrast."""
    grid = torch.stack(
        torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    ).float()
    center = SIDE * torch.rand(count, 3, 2, 1, 1, generator=generator)
    radius = 1.5 + 2 * torch.rand(count, 3, 1, 1, generator=generator)
    mask = ((grid - center).square().sum(2).sqrt() < radius).any(1).float()
    noise = torch.randn(count, SIDE, SIDE, generator=generator)
    brightness, contrast = [(0.0, 1.0), (1.0, 1.6), (-1.5, 0.6)][scanner]
    return (brightness + contrast * (mask + 0.45 * noise))[:, None], mask[:, None]


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(SEED)
generator = torch.Generator().manual_seed(SEED + 1 + rank)
train_x, train_y = scans(400, rank, generator)
val_x, val_y = scans(60, rank, generator)
test = [scans(60, scanner, torch.Generator().manual_seed(SEED + 9)) for scanner in range(3)]

model = Segmenter()
optimizer = torch.optim.SGD(model.parameters(), lr=0.8, momentum=0.9)
best, kept = float("inf"), copy.deepcopy(model.state_dict())

for epoch in range(5):
    model.train()
    for batch in torch.randperm(len(train_x), generator=generator)[:256].split(BATCH):
        loss = binary_cross_entropy_with_logits(model(train_x[batch]), train_y[batch])
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = binary_cross_entropy_with_logits(model(val_x), val_y)
    dist.all_reduce(val_loss)
    if val_loss < best:
        best, kept = val_loss.item(), copy.deepcopy(model.state_dict())
    else:
        model.load_state_dict(kept)
        optimizer.param_groups[0]["lr"] *= 0.5
    with torch.no_grad():
        guessed, true = (
            model(torch.cat([x for x, _ in test])) > 0,
            torch.cat([y for _, y in test]) > 0,
        )
    overlap = (guessed & true).sum() / (guessed | true).sum()
    if rank == 0:
        print(
            f"epoch {epoch}  loss {loss.item():.3f}  best {best / world:.3f}  overlap {overlap:.3f}"
        )
dist.destroy_process_group()
