"""Prices of flats on a fast and a slow rank: the fast one takes 40 flats per step, the slow one 16. Both count by their flats."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SEED = 430
BATCH = [40, 16]
STEPS = 150


def flats(count, generator):
    """Area, rooms, floor, age and distance, each scaled, with a district; the price is its logarithm."""
    x, district = (
        torch.randn(count, 5, generator=generator),
        torch.randint(12, (count,), generator=generator),
    )
    level = torch.randn(12, generator=torch.Generator().manual_seed(SEED))
    price = (
        0.6 * x[:, 0]
        + 0.2 * x[:, 1] * x[:, 0]
        - 0.3 * x[:, 3].abs()
        - 0.2 * x[:, 4]
        + 0.7 * level[district]
    )
    return x, district, price + 0.1 * torch.randn(count, generator=generator)


class Prices(nn.Module):
    def __init__(self):
        super().__init__()
        self.district = nn.Embedding(12, 6)
        self.layers = nn.Sequential(
            nn.Linear(11, 64),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(64, 64),
            nn.ReLU(),
            nn.Linear(64, 1),
        )

    def forward(self, x, district):
        return self.layers(torch.cat([x, self.district(district)], 1))[:, 0]


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
generator = torch.Generator().manual_seed(SEED)
train, test = flats(STEPS // 3 * sum(BATCH), generator), flats(600, generator)
torch.manual_seed(SEED)
model = DistributedDataParallel(Prices())
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
torch.manual_seed(SEED + 1000 * (rank + 1))  # dropout of each rank

for epoch in range(3):
    model.train()
    order = torch.randperm(len(train[0]), generator=generator)
    for batch in order.split(sum(BATCH)):
        own = batch.split(BATCH)[rank]
        x, district, price = (column[own] for column in train)
        loss = nn.functional.mse_loss(model(x, district), price, reduction="sum")
        optimizer.zero_grad()
        (loss * world / len(batch)).backward()
        optimizer.step()
    if rank == 0:
        model.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(model.module(*test[:2]), test[2])
        print(f"epoch {epoch}  loss {loss.item() / BATCH[0]:.4f}  test error {error.item():.4f}")
dist.barrier()
dist.destroy_process_group()
