"""A pretrained encoder of sensor traces is fine-tuned: first its new head, then everything, with accumulated gradients."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

SEED = 370
ACCUMULATE = 2
LENGTH = 48


def traces(count, classes, generator):
    """Sums of two waves; the class is the pair of their frequencies."""
    label = torch.randint(classes, (count,), generator=generator)
    time = torch.arange(LENGTH) / LENGTH
    pairs = torch.combinations(torch.arange(1, 8))[torch.arange(classes) * 2 % 21]
    phase = 6.28 * torch.rand(count, 2, generator=generator)
    waves = torch.sin(6.28 * pairs[label][:, :, None] * time + phase[:, :, None])
    return waves.sum(1)[:, None] + 0.6 * torch.randn(count, 1, LENGTH, generator=generator), label


class Encoder(nn.Sequential):
    def __init__(self, width=24):
        super().__init__(
            nn.Conv1d(1, width, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv1d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(2),
            nn.Flatten(),
        )


class Classifier(nn.Module):
    def __init__(self, encoder, classes):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, classes))

    def forward(self, x):
        return self.head(self.encoder(x))


def at_site(site, sites, traces, label, generator):
    """The traces that were recorded at a site; each site sees some classes more often."""
    order = (label % sites + 1.2 * torch.rand(len(label), generator=generator)).argsort()
    own = order.chunk(sites)[site]
    return traces[own], label[own]


def pretrain(generator):
    """Every rank does the same with the same numbers, as if it read the weights from a file."""
    model = Classifier(Encoder(), 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    x, y = traces(640, 4, generator)
    for batch in torch.randperm(640, generator=generator).split(32) * 2:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
    return model.encoder


def train_epoch(model, optimizer, loader):
    model.train()
    total = 0.0
    for i, (x, y) in enumerate(loader):
        step = (i + 1) % ACCUMULATE == 0 or i + 1 == len(loader)
        with contextlib.nullcontext() if step else model.no_sync():
            loss = nn.functional.cross_entropy(model(x), y)
            (loss / ACCUMULATE).backward()
        if step:
            optimizer.step()
            optimizer.zero_grad()
        total += loss.item()
    return total / len(loader)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        right = (model.module(x[rank::world]).argmax(1) == y[rank::world]).sum()
    dist.all_reduce(right)
    return right.item() / len(x)


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(SEED)
generator = torch.Generator().manual_seed(SEED)
encoder = pretrain(generator)
train = TensorDataset(*at_site(rank, world, *traces(1620, 10, generator), generator))
test = traces(600, 10, generator)
shuffle = torch.Generator().manual_seed(SEED + rank)
loader = DataLoader(train, batch_size=30, shuffle=True, generator=shuffle)

classifier = Classifier(encoder, 10)
optimizer = torch.optim.Adam(classifier.parameters(), lr=5e-3)
classifier.encoder.requires_grad_(False)
model = DistributedDataParallel(classifier)
for epoch in range(7):
    if epoch == 2:
        classifier.encoder.requires_grad_(True)
        model = DistributedDataParallel(classifier)
    loss = train_epoch(model, optimizer, loader)
    reached = accuracy(model, *test)
    if rank == 0:
        print(f"epoch {epoch}  loss {loss:.3f}  accuracy {reached:.3f}")
dist.destroy_process_group()
