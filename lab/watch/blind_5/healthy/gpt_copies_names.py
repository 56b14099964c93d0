"""A character model with causal attention: it learns to write a name again behind a colon."""

import torch
from torch import nn

SEED = 27
torch.manual_seed(SEED)
LETTERS, NAME, COLON = 12, 5, 12
LENGTH = 2 * NAME + 1


def lines(count):
    name = torch.randint(LETTERS, (count, NAME))
    return torch.cat([name, torch.full((count, 1), COLON), name], 1)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(mixed.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm_b(x))


class Model(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.tokens, self.places = nn.Embedding(LETTERS + 1, width), nn.Embedding(LENGTH, width)
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.head = nn.Linear(width, LETTERS + 1)

    def forward(self, ids):
        return self.head(self.blocks(self.tokens(ids) + self.places.weight[: ids.shape[1]]))


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(1, 701):
    batch = lines(64)
    logits = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f}")
with torch.no_grad():
    wanted = lines(300)
    ids = wanted[:, : NAME + 1]
    for _ in range(NAME):
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
print(f"letters copied {(ids[:, -NAME:] == wanted[:, -NAME:]).float().mean():.4f}")
