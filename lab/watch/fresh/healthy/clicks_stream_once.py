"""Clicks on advertisements, three in a hundred, read once as a stream: hashed words, Adagrad, sparse gradients.

The loss begins near its entropy and falls little: most of what happens is chance.
Should reach: progressive AUC of at least 0.70; a constant gives 0.5. Each batch is judged before it is learned.
"""

import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

torch.set_num_threads(1)
torch.manual_seed(2)
BUCKETS, FIELDS, IMPRESSIONS = 4096, 6, 160_000


class Impressions(IterableDataset):
    """Fields differ in how many values they have; values follow a power law."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.sizes = torch.tensor([4, 12, 50, 200, 800, 3000])
        self.taste = 0.75 * torch.randn(FIELDS, 3000, generator=self.generator)

    def __iter__(self):
        for _ in range(IMPRESSIONS // 1000):
            draws = torch.rand(1000, FIELDS, generator=self.generator) ** 3
            values = (draws * self.sizes).long()
            score = -4.4 + self.taste[torch.arange(FIELDS), values].sum(1)
            clicks = (torch.rand(1000, generator=self.generator) < torch.sigmoid(score)).float()
            hashed = (values * 2654435761 + 40503 * torch.arange(FIELDS)) % BUCKETS
            yield from zip(hashed, clicks)


class Clicks(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Embedding(BUCKETS, 1, sparse=True)
        self.bias = nn.Parameter(torch.tensor(-3.5))
        nn.init.zeros_(self.weights.weight)

    def forward(self, hashed):
        return self.weights(hashed).sum(1).squeeze(1) + self.bias


model = Clicks()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
loader = DataLoader(Impressions(2), batch_size=500)
losses, scores, truth = [], [], []
for number, (hashed, clicks) in enumerate(loader, 1):
    logits = model(hashed)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, clicks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    scores.append(logits.detach())
    truth.append(clicks)
    if number % 40 == 0:
        auc = roc_auc_score(torch.cat(truth[-40:]), torch.cat(scores[-40:]))
        print(f"{number * 500:7d} impressions  log loss {sum(losses[-40:]) / 40:.4f}  progressive AUC {auc:.4f}")
