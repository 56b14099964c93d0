"""Continues melodies with a decoder of its own; judged by melodies that it writes."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(31)
torch.set_num_threads(1)
NOTES, LENGTH, WIDTH = 16, 20, 32
steps = torch.tensor([1, 2, 3, 5])


def melodies(count: int) -> torch.Tensor:
    first, jump, turn = torch.randint(NOTES, (count, 1)), steps[torch.randint(4, (count, 1))], torch.randint(2, 4, (count, 1))
    place = torch.arange(LENGTH)
    return (first + jump * place + (place % turn)) % NOTES


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        parts = self.mix(self.before(x)).view(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.feed(self.after(x))


class Composer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.notes, self.places = nn.Embedding(NOTES, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.last = nn.LayerNorm(WIDTH)
        self.next = nn.Linear(WIDTH, NOTES)

    def forward(self, notes: torch.Tensor) -> torch.Tensor:
        x = self.notes(notes) + self.places(torch.arange(notes.shape[1]))
        return self.next(self.last(self.blocks(x)))


@torch.no_grad()
def written(model: Composer, whole: torch.Tensor) -> float:
    model.eval()
    notes = whole[:, :8]
    while notes.shape[1] < LENGTH:
        notes = torch.cat([notes, model(notes)[:, -1].argmax(-1, keepdim=True)], 1)
    model.train()
    return (notes[:, 8:] == whole[:, 8:]).float().mean().item()


train, test = melodies(1000), melodies(200)
model = Composer()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=200)
for epoch in range(10):
    for rows in torch.randperm(1000).split(50):
        notes = train[rows]
        scores = model(notes[:, :-1])
        loss = F.cross_entropy(scores.reshape(-1, NOTES), notes[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"epoch {epoch} loss {loss.item():.4f} notes right {written(model, test):.4f}")
