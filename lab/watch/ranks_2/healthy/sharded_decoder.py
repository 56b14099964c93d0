"""A small decoder on two ranks with sharded parameters: every block and then the whole model is sharded, then optimized."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (world,))
torch.manual_seed(51)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, x):
        n = x.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        y = self.norm(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm_2(x))


class Decoder(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(12, width))
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, codes):
        x = self.embedding(codes) + self.positions[: codes.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def sequences(count, generator):
    start = torch.randint(0, 10, (count, 1), generator=generator)
    stride = torch.randint(1, 4, (count, 1), generator=generator)
    return (start + stride * torch.arange(13)) % 10


model = Decoder(10, 32)
for block in model.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
random = torch.Generator().manual_seed(70 + rank)
held = sequences(100, torch.Generator().manual_seed(5))
for step in range(120):
    codes = sequences(16, random)
    logits = model(codes[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), codes[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        model.eval()
        with torch.no_grad():
            correct = (model(held[:, :-1]).argmax(-1) == held[:, 1:])[:, 2:].float().mean()
        model.train()
        if rank == 0:
            print(f"step {step} loss {loss.item():.3f} val accuracy {correct.item():.3f}")
dist.destroy_process_group()
