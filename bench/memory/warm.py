"""What ran in the process before the peaks on a T4 were measured in it.

It measured the context with a product and a convolution, and trained small transformers: cuBLAS took
its workspaces, which stay where they are, while what else was kept was given back.
"""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        y = self.ln1(x)
        query, key, value = (part(y).view(shape).transpose(1, 2) for part in self.qkv)
        scores = query @ key.transpose(-2, -1) / shape[-1] ** 0.5
        x = x + self.out((scores.softmax(-1) @ value).transpose(1, 2).reshape(x.shape))
        return x + self.down(nn.functional.gelu(self.up(self.ln2(x))))


def warm_up() -> None:
    """Leave the GPU as that process did."""
    matrix = torch.randn(256, 256, device="cuda")
    (matrix @ matrix).sum()
    convolution = nn.Conv2d(3, 16, 3, padding=1).cuda()
    convolution(torch.randn(1, 3, 64, 64, device="cuda")).sum().backward()
    del matrix, convolution
    torch.cuda.empty_cache()
    _train()
    torch.cuda.empty_cache()


def _train() -> None:
    model = nn.Sequential(*(Block(512, 8) for _ in range(4))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(4, 256, 512, device="cuda")
    for _ in range(2):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().pow(2).mean()
        loss.backward()
        optimizer.step()
