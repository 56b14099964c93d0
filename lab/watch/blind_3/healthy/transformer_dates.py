"""Dates in words to ISO form with nn.Transformer: padding masks in three places, a causal mask, label smoothing, inverse square root warm-up."""

import datetime
import random

import torch
from torch import nn

random.seed(127)
torch.manual_seed(127)
FORMATS = ["%d %B %Y", "%B %d, %Y", "%d.%m.%Y", "%b %d %Y", "%m/%d/%Y"]
CHARS = ["<pad>", "<s>", "</s>", *sorted(set("0123456789-/., ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))]
INDEX = {c: i for i, c in enumerate(CHARS)}
PAD, BOS, EOS = 0, 1, 2


def example():
    day = datetime.date(2000, 1, 1) + datetime.timedelta(days=random.randrange(7300))
    return [INDEX[c] for c in day.strftime(random.choice(FORMATS))], [INDEX[c] for c in day.strftime("%y%m%d")]


def batch(n):
    sources, targets = zip(*(example() for _ in range(n)))
    width = max(map(len, sources))
    src = torch.tensor([s + [PAD] * (width - len(s)) for s in sources])
    return src, torch.tensor([[BOS, *t, EOS] for t in targets])


class Model(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(len(CHARS), dim, padding_idx=PAD)
        self.place = nn.Embedding(32, dim)
        self.core = nn.Transformer(dim, 4, 1, 1, 96, dropout=0.0, batch_first=True)
        self.head = nn.Linear(dim, len(CHARS))

    def forward(self, src, tgt):
        hidden = src == PAD
        causal = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        out = self.core(
            self.locate(src), self.locate(tgt), tgt_mask=causal, src_key_padding_mask=hidden, memory_key_padding_mask=hidden,
            tgt_is_causal=True,
        )
        return self.head(out)

    def locate(self, ids):
        return self.embed(ids) + self.place(torch.arange(ids.size(1)))


@torch.no_grad()
def exact(model, n=200):
    model.eval()
    src, tgt = batch(n)
    out = torch.full((n, 1), BOS)
    for _ in range(6):
        out = torch.cat([out, model(src, out)[:, -1].argmax(-1, keepdim=True)], 1)
    model.train()
    return (out == tgt[:, :-1]).all(1).float().mean().item()


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3, betas=(0.9, 0.98))
warmup = 80
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) / warmup, (warmup / (s + 1)) ** 0.5))
criterion = nn.CrossEntropyLoss(label_smoothing=0.05, ignore_index=PAD)
for step in range(1, 501):
    src, tgt = batch(48)
    logits = model(src, tgt[:, :-1])
    loss = criterion(logits.transpose(1, 2), tgt[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f} exact {exact(model):.4f}")
