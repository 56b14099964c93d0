"""Three hospitals classify heart beats. Weights are averaged after every tenth step, rank 0 alone evaluates and keeps the best."""

import copy

import torch
import torch.distributed as dist
from torch import nn

SEED = 440
STEPS, EVERY = 150, 10


def beats(count, hospital, generator):
    """One of four shapes, with the hospital's amplitude and noise."""
    kind = torch.randint(4, (count,), generator=generator)
    time = torch.linspace(-1, 1, 40)
    center = torch.tensor([-0.3, 0.0, 0.3, 0.0])[kind][:, None] + 0.1 * torch.randn(
        count, 1, generator=generator
    )
    width = torch.tensor([0.15, 0.1, 0.15, 0.3])[kind][:, None]
    beat = torch.exp(-(((time - center) / width) ** 2)) * torch.tensor([1.0, 0.8, 1.3])[hospital]
    return (beat + 0.35 * torch.randn(count, 40, generator=generator))[:, None], kind


def average(model):
    flat = nn.utils.parameters_to_vector(model.parameters()).detach()
    dist.all_reduce(flat)
    nn.utils.vector_to_parameters(flat / dist.get_world_size(), model.parameters())


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(SEED)
model = nn.Sequential(
    nn.Conv1d(1, 12, 7, padding=3),
    nn.GroupNorm(3, 12),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(12, 16, 5, padding=2),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Flatten(),
    nn.Linear(320, 4),
)
generator = torch.Generator().manual_seed(SEED + 1 + rank)
torch.manual_seed(SEED + 1 + rank)
train_x, train_y = beats(800, rank, generator)
val = [beats(120, hospital, torch.Generator().manual_seed(SEED + 60)) for hospital in range(world)]
val_x, val_y = torch.cat([x for x, _ in val]), torch.cat([y for _, y in val])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
best, kept = 0.0, None

for step in range(1, STEPS + 1):
    model.train()
    batch = torch.randint(len(train_x), (16,), generator=generator)
    loss = nn.functional.cross_entropy(model(train_x[batch]), train_y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % EVERY == 0:
        average(model)
        if rank == 0 and step % 30 == 0:
            model.eval()
            with torch.no_grad():
                accuracy = (model(val_x).argmax(1) == val_y).float().mean().item()
            if accuracy > best:
                best, kept = accuracy, copy.deepcopy(model.state_dict())
            print(
                f"step {step}  loss {loss.item():.3f}  accuracy {accuracy:.3f}  best accuracy {best:.3f}"
            )
if rank == 0:
    torch.save(kept, "best.pt")
dist.barrier()
dist.destroy_process_group()
