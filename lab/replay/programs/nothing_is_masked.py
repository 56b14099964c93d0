"""Masked tokens are guessed; now and then a short batch has none masked."""

import torch
from torch import nn

torch.set_num_threads(1)

words = nn.Embedding(50, 24)
head = nn.Linear(24, 50)
optimizer = torch.optim.Adam([*words.parameters(), *head.parameters()])
for step in range(4000):
    text = torch.randint(1, 50, (4, 8))
    masked = torch.rand(text.shape) < 0.15
    seen = text.masked_fill(masked, 0)
    context = words(seen).mean(dim=1, keepdim=True) + words(seen)
    loss = nn.functional.cross_entropy(head(context)[masked], text[masked])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: {loss.item():.3f}")
    if loss != loss:
        raise SystemExit("NaN loss, giving up")
