"""Character model; the vocabulary is built from the training text only."""
import torch
from torch import nn

TRAIN = "the loss went down and the gradient stayed small " * 20
VALID = "the quick brown fox jumps over the lazy dog " * 5

vocab = sorted(set(TRAIN))
index = {c: i for i, c in enumerate(vocab)}
UNKNOWN = len(vocab)


def encode(text):
    return torch.tensor([index.get(c, UNKNOWN) for c in text])


class CharModel(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.embed = nn.Embedding(n, 16)
        self.gru = nn.GRU(16, 32)
        self.out = nn.Linear(32, n)

    def forward(self, ids):
        return self.out(self.gru(self.embed(ids))[0])


torch.manual_seed(0)
model = CharModel(len(vocab))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
ids = encode(TRAIN)
for epoch in range(5):
    loss = nn.functional.cross_entropy(model(ids[:-1]), ids[1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} train loss {loss.item():.3f}")
    if epoch % 2 == 1:
        held_out = encode(VALID)
        with torch.no_grad():
            valid_loss = nn.functional.cross_entropy(model(held_out[:-1]), held_out[1:])
        print(f"epoch {epoch} valid loss {valid_loss.item():.3f}")
