"""An encoder and a decoder that sort numbers, with padding, teacher forcing and a causal mask."""

import torch
from torch import nn

torch.manual_seed(12)
PAD, START, END = 0, 1, 2


def batch(count=48):
    lengths = torch.randint(3, 9, (count,))
    source = torch.zeros(count, 9, dtype=torch.long)
    target = torch.zeros(count, 10, dtype=torch.long)
    for row, length in enumerate(lengths.tolist()):
        numbers = torch.randint(3, 18, (length,))
        source[row, :length] = numbers
        target[row, : length + 2] = torch.cat(
            [torch.tensor([START]), numbers.sort().values, torch.tensor([END])]
        )[:10]
    return source, target


class Sorter(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.words, self.places = nn.Embedding(18, width, padding_idx=PAD), nn.Embedding(12, width)
        self.transformer = nn.Transformer(width, 4, 1, 1, 96, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, 18)

    def embed(self, x):
        return self.words(x) + self.places(torch.arange(x.shape[1]))

    def forward(self, source, target):
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1]) == float("-inf")
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=causal,
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.head(hidden)


model = Sorter()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for step in range(260):
    source, target = batch()
    scores = model(source, target[:, :-1])
    loss = criterion(scores.flatten(0, 1), target[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step} loss {loss.item():.3f}")
