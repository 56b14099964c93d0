"""Masked words in sentences of different lengths, with a key padding mask and labels of -100 elsewhere."""

import torch
from torch import nn

torch.manual_seed(20)
torch.set_num_threads(1)
SYMBOLS, LENGTH, MASK = 30, 14, 1


def sentences(count):
    begin = torch.randint(2, SYMBOLS, (count, 1))
    tokens = 2 + (begin - 2 + torch.arange(LENGTH) * 3) % (SYMBOLS - 2)
    lengths = torch.randint(6, LENGTH + 1, (count, 1))
    pad = torch.arange(LENGTH) >= lengths
    chosen = (torch.rand(count, LENGTH) < 0.2) & ~pad
    labels = torch.where(chosen, tokens, torch.tensor(-100))
    return torch.where(chosen, torch.tensor(MASK), tokens).masked_fill(pad, 0), pad, labels


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(SYMBOLS, 48, padding_idx=0), nn.Parameter(torch.zeros(LENGTH, 48))
        layer = nn.TransformerEncoderLayer(48, 4, 96, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(48, SYMBOLS)

    def forward(self, tokens, pad):
        return self.head(self.layers(self.words(tokens) + self.places, src_key_padding_mask=pad))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(1, 301):
    tokens, pad, labels = sentences(32)
    loss = nn.functional.cross_entropy(model(tokens, pad).transpose(1, 2), labels, ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 75 == 0:
        model.eval()
        with torch.no_grad():
            tokens, pad, labels = sentences(200)
            guess, chosen = model(tokens, pad).argmax(2), labels >= 0
            accuracy = (guess[chosen] == labels[chosen]).float().mean()
        model.train()
        print(f"step {step} loss {loss.item():.3f} masked accuracy {accuracy:.4f}")
