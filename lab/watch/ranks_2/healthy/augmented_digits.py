"""A convolutional classifier of digits on two ranks, with shifts and noise drawn on each rank, validated in parts."""

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(3)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
order = torch.randperm(len(labels))
train, val = order[:1400], order[1400:]


def augment(images, generator):
    dy, dx = torch.randint(-1, 2, (2,), generator=generator).tolist()
    noise = 0.05 * torch.randn(images.shape, generator=generator)
    return images.roll((dy, dx), (-2, -1)) + noise


model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
ddp = DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
train_data = TensorDataset(images[train], labels[train])
train_sampler = DistributedSampler(train_data, shuffle=True)
loader = DataLoader(train_data, batch_size=20, sampler=train_sampler)
val_data = TensorDataset(images[val], labels[val])
val_sampler = DistributedSampler(val_data, shuffle=False)
val_loader = DataLoader(val_data, batch_size=100, sampler=val_sampler)
random = torch.Generator().manual_seed(50 + rank)
for epoch in range(5):
    train_sampler.set_epoch(epoch)
    ddp.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(ddp(augment(x, random)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ddp.eval()
    counts = torch.zeros(2)
    with torch.no_grad():
        for x, y in val_loader:
            counts += torch.tensor([(model(x).argmax(1) == y).sum(), len(y)])
    dist.all_reduce(counts)
    if rank == 0:
        print(f"epoch {epoch} loss {loss.item():.3f} val accuracy {counts[0] / counts[1]:.3f}")
dist.destroy_process_group()
