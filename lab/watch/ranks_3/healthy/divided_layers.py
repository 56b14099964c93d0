"""Energy of buildings from a tabular description, with layers that two ranks share: tensor parallel, DTensor."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

SEED = 400


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 3 * width)
        self.down = nn.Linear(3 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Tower(nn.Module):
    def __init__(self, width=32, blocks=2):
        super().__init__()
        self.enter = nn.Linear(9, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.leave = nn.Linear(width, 1)

    def forward(self, x):
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)
        return self.leave(x)[:, 0]


def buildings(count, generator):
    x = torch.rand(count, 9, generator=generator) * 2 - 1
    surface = x[:, 0] * x[:, 1] + torch.sin(3 * x[:, 2]) + (x[:, 3] > 0.2) * x[:, 4] - x[:, 5].abs()
    return x, surface + 0.1 * torch.randn(count, generator=generator)


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (world,))
torch.manual_seed(SEED)
generator = torch.Generator().manual_seed(SEED)
train_x, train_y = buildings(2000, generator)
test_x, test_y = buildings(600, generator)

model = Tower()
for block in model.blocks:
    parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, foreach=False)

for epoch in range(4):
    model.train()
    for batch in torch.randperm(len(train_x), generator=generator).split(50):
        loss = nn.functional.mse_loss(model(train_x[batch]), train_y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(test_x), test_y)
    if rank == 0:
        print(f"epoch {epoch}  loss {loss.item():.4f}  test error {error.item():.4f}")
dist.destroy_process_group()
