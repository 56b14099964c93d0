"""Four stations learn from their own weather without a center: after each step a station mixes weights with one neighbor."""

import torch
import torch.distributed as dist
from torch import nn

SEED = 420
STEPS = 160


def weather(count, station, generator):
    """The rain of tomorrow from measurements of today; stations see different ranges of them."""
    x = torch.randn(count, 6, generator=generator) + torch.tensor([0.4, -0.4, 0.2, -0.2])[station]
    rain = torch.sin(x[:, 0]) + x[:, 1] * x[:, 2] / 2 + torch.relu(x[:, 3]) - 0.5 * x[:, 4]
    return x, (rain + 0.1 * torch.randn(count, generator=generator))[:, None]


def mix(model, partner):
    """Both partners continue from the mean of their weights."""
    own = nn.utils.parameters_to_vector(model.parameters()).detach()
    other = torch.empty_like(own)
    for request in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, own, partner), dist.P2POp(dist.irecv, other, partner)]
    ):
        request.wait()
    nn.utils.vector_to_parameters((own + other) / 2, model.parameters())


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(SEED)
model = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
generator = torch.Generator().manual_seed(SEED + 1 + rank)
train_x, train_y = weather(600, rank, generator)
test = [weather(150, station, torch.Generator().manual_seed(SEED + 50)) for station in range(world)]
test_x, test_y = torch.cat([x for x, _ in test]), torch.cat([y for _, y in test])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.8)

for step in range(STEPS):
    batch = torch.randint(len(train_x), (24,), generator=generator)
    loss = nn.functional.mse_loss(model(train_x[batch]), train_y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    direction = 1 if (rank + step) % 2 == 0 else -1
    mix(model, (rank + direction) % world)
    if step % 40 == 39:
        with torch.no_grad():
            error = nn.functional.mse_loss(model(test_x), test_y)
        dist.all_reduce(error)
        if rank == 0:
            print(f"step {step + 1}  loss {loss.item():.4f}  test error {error.item() / world:.4f}")

flat = nn.utils.parameters_to_vector(model.parameters()).detach()
dist.all_reduce(flat)
nn.utils.vector_to_parameters(flat / world, model.parameters())
with torch.no_grad():
    error = nn.functional.mse_loss(model(test_x), test_y)
if rank == 0:
    print(f"all stations  test error {error.item():.4f}")
dist.destroy_process_group()
