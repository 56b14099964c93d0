"""Reads sums digit by digit and predicts the total; a curriculum feeds short sums first, in order of length, later all of them mixed."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

torch.manual_seed(61)
LONGEST, N = 10, 3000
lengths = torch.randint(2, LONGEST + 1, (N,))
digits = torch.randint(0, 10, (N, LONGEST))
keep = torch.arange(LONGEST)[None] < lengths[:, None]
digits = torch.where(keep, digits, torch.full_like(digits, 10))
totals = torch.where(keep, digits, torch.zeros_like(digits)).sum(1).float()
train_set = TensorDataset(digits[:2400], lengths[:2400], totals[:2400])


class Curriculum(Sampler):
    """The shortest share of the examples, in order during the first epochs, shuffled later."""

    def __init__(self, lengths, ordered_epochs):
        self.lengths, self.ordered_epochs, self.epoch = lengths, ordered_epochs, 0

    def __len__(self):
        share = min(1.0, 0.4 + 0.2 * self.epoch)
        return int(share * len(self.lengths))

    def __iter__(self):
        chosen = self.lengths.argsort(stable=True)[: len(self)]
        if self.epoch >= self.ordered_epochs:
            chosen = chosen[torch.randperm(len(chosen))]
        return iter(chosen.tolist())


class Adder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(11, dim, padding_idx=10)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, 1)

    def forward(self, digits, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(digits), lengths, batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return 20 * self.out(h[-1]).squeeze(1)


model = Adder()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
sampler = Curriculum(lengths[:2400], ordered_epochs=3)
loader = DataLoader(train_set, batch_size=40, sampler=sampler)
for epoch in range(14):
    sampler.epoch = epoch
    model.train()
    seen = []
    for d, n, total in loader:
        loss = nn.functional.smooth_l1_loss(model(d, n), total)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    model.eval()
    with torch.no_grad():
        error = (model(digits[2400:], lengths[2400:]) - totals[2400:]).abs().mean().item()
    print(f"epoch {epoch} batches {len(seen)} loss {sum(seen) / len(seen):.4f} error {error:.3f}")
