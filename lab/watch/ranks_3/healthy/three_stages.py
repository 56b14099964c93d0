"""A network in three stages on three ranks. Micro-batches go forward through the stages, their gradients come back."""

import torch
import torch.distributed as dist
from torch import nn

SEED = 360
WIDTH, MICRO, MICRO_BATCHES = 32, 32, 2
EPOCHS, STEPS = 6, 20


def make_data(count, generator):
    """Points of ten classes, each with two clusters, among many columns that say nothing."""
    centers = 1.0 * torch.randn(20, 16, generator=torch.Generator().manual_seed(SEED))
    cluster = torch.randint(20, (count,), generator=generator)
    points = 1.5 * centers[cluster] + torch.randn(count, 16, generator=generator)
    return torch.cat([points, 1.5 * torch.randn(count, 80, generator=generator)], 1), cluster % 10


def residual(width):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1))


class Stage(nn.Module):
    def __init__(self, rank, last):
        super().__init__()
        self.enter = nn.Linear(96, WIDTH) if rank == 0 else nn.Identity()
        self.middle = nn.ModuleList([residual(WIDTH) for _ in range(2)])
        self.leave = nn.Linear(WIDTH, 10) if rank == last else nn.Identity()

    def forward(self, x):
        x = self.enter(x)
        for layer in self.middle:
            x = x + layer(x)
        return self.leave(x)


class Pipeline:
    def __init__(self, stage, rank, last):
        self.stage, self.rank, self.last = stage, rank, last

    def forward(self, inputs, rows):
        """The outputs of this stage with the inputs that they came from."""
        if self.rank == 0:
            received = inputs
        else:
            received = torch.empty(rows, WIDTH)
            dist.recv(received, src=self.rank - 1)
            received.requires_grad_()
        sent = self.stage(received)
        if self.rank < self.last:
            dist.send(sent.detach(), dst=self.rank + 1)
        return received, sent

    def backward(self, received, sent, loss=None):
        if self.rank == self.last:
            loss.backward()
        else:
            gradient = torch.empty_like(sent)
            dist.recv(gradient, src=self.rank + 1)
            sent.backward(gradient)
        if self.rank > 0:
            dist.send(received.grad, dst=self.rank - 1)


dist.init_process_group("gloo")
rank, last = dist.get_rank(), dist.get_world_size() - 1
torch.manual_seed(SEED + rank)
generator = torch.Generator().manual_seed(SEED)
train_x, train_y = make_data(4000, generator)
test_x, test_y = make_data(1000, generator)
stage = Stage(rank, last)
pipeline = Pipeline(stage, rank, last)
optimizer = torch.optim.SGD(stage.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 0.05, total_steps=EPOCHS * STEPS, pct_start=0.2, div_factor=500, cycle_momentum=False
)

for epoch in range(EPOCHS):
    stage.train()
    order = torch.randperm(len(train_x), generator=generator)
    total = 0.0
    for batch in order[: STEPS * MICRO * MICRO_BATCHES].split(MICRO * MICRO_BATCHES):
        optimizer.zero_grad()
        passed = [pipeline.forward(train_x[micro], MICRO) for micro in batch.split(MICRO)]
        for (received, sent), micro in zip(passed, batch.split(MICRO), strict=True):
            loss = (
                nn.functional.cross_entropy(sent, train_y[micro]) / MICRO_BATCHES
                if rank == last
                else None
            )
            pipeline.backward(received, sent, loss)
            total += loss.item() if rank == last else 0.0
        optimizer.step()
        scheduler.step()
    stage.eval()
    with torch.no_grad():
        scores = pipeline.forward(test_x, len(test_x))[1]
    if rank == last:
        accuracy = (scores.argmax(1) == test_y).float().mean()
        print(f"epoch {epoch}  loss {total / STEPS:.3f}  accuracy {accuracy:.3f}", flush=True)
dist.destroy_process_group()
