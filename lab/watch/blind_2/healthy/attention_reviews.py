"""Reviews of different lengths with one decisive word, pooled by masked attention; begins at chance for a while."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(37)
VOCAB, CLASSES = 120, 6


def review():
    length = int(torch.randint(5, 26, ()))
    words = torch.randint(13, VOCAB, (length,))
    label = int(torch.randint(CLASSES, ()))
    place = int(torch.randint(length, ()))
    words[place] = 1 + 2 * label + int(torch.randint(2, ()))
    return words, label


def collate(items):
    ids = pad_sequence([w for w, _ in items], batch_first=True, padding_value=0)
    return ids, ids != 0, torch.tensor([label for _, label in items])


class AttentionPool(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.key = nn.Linear(dim, dim)
        self.query = nn.Parameter(torch.randn(dim) / dim**0.5)
        self.value = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, CLASSES)

    def forward(self, ids, mask):
        h = self.emb(ids)
        scores = torch.tanh(self.key(h)) @ self.query
        scores = scores.masked_fill(~mask, -1e9)
        weights = torch.softmax(scores, dim=1)
        pooled = (weights.unsqueeze(-1) * torch.relu(self.value(h))).sum(1)
        return self.out(pooled)


train = [review() for _ in range(1500)]
test = collate([review() for _ in range(500)])
loader = torch.utils.data.DataLoader(train, batch_size=30, shuffle=True, collate_fn=collate)
model = AttentionPool()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    model.train()
    for ids, mask, y in loader:
        loss = nn.functional.cross_entropy(model(ids, mask), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        accs = [(model(i[None], m[None]).argmax(-1) == t).item() for i, m, t in zip(*test)]
    print(f"epoch {epoch} loss {loss.item():.4f} test_acc {sum(accs) / len(accs):.4f}")
