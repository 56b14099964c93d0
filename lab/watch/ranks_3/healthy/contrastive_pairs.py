"""Photo and caption embeddings trained against each other: every rank sees the captions of all ranks as negatives."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, normalize
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SEED = 300
WORDS = 120


class Gather(torch.autograd.Function):
    """The rows of all ranks, in the order of the ranks; gradients come back to the rank that sent the rows."""

    @staticmethod
    def forward(ctx, rows):
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient.chunk(dist.get_world_size())[dist.get_rank()]


class TwoTowers(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.photo = nn.Sequential(
            nn.Linear(48, 96), nn.GELU(), nn.LayerNorm(96), nn.Linear(96, width)
        )
        self.words = nn.EmbeddingBag(WORDS, 64, mode="mean")
        self.caption = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, width))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def encode_photo(self, photo):
        return normalize(self.photo(photo), dim=1)

    def encode_caption(self, caption):
        return normalize(self.caption(self.words(caption)), dim=1)

    def forward(self, photo, caption):
        return self.encode_photo(photo), self.encode_caption(caption), self.scale.exp()


def make_pairs(count, generator):
    """Photos and captions of the same 10 hidden attributes."""
    attributes = torch.randn(count, 10, generator=generator)
    weights = torch.Generator().manual_seed(SEED)
    pixels = torch.tanh(attributes @ torch.randn(10, 48, generator=weights) * 0.5)
    preferences = attributes @ torch.randn(10, WORDS, generator=weights)
    gumbel = -torch.log(-torch.log(torch.rand(count, WORDS, generator=generator)))
    return pixels + 0.1 * torch.randn(count, 48, generator=generator), (preferences + gumbel).topk(
        9
    ).indices


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(SEED + rank)
generator = torch.Generator().manual_seed(SEED + 1)
train = TensorDataset(*make_pairs(2048, generator))
test_photos, test_captions = make_pairs(256, generator)

model = DistributedDataParallel(TwoTowers())
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
sampler = DistributedSampler(train, seed=SEED)
loader = DataLoader(train, batch_size=32, sampler=sampler, drop_last=True)

for epoch in range(5):
    sampler.set_epoch(epoch)
    model.train()
    total = 0.0
    for photo, caption in loader:
        photos, captions, scale = model(photo, caption)
        targets = torch.arange(len(photo)) + rank * len(photo)
        loss = cross_entropy(scale * photos @ Gather.apply(captions).T, targets)
        loss = (loss + cross_entropy(scale * captions @ Gather.apply(photos).T, targets)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        scores = (
            model.module.encode_photo(test_photos) @ model.module.encode_caption(test_captions).T
        )
    recall = (scores.topk(1).indices == torch.arange(len(scores))[:, None]).any(1).float().mean()
    if rank == 0:
        print(f"epoch {epoch}  loss {total / len(loader):.3f}  recall at 1 {recall:.3f}")
dist.destroy_process_group()
