"""Sets of events; some are empty, some lines are broken."""
import json
import sys
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 4


class Events(Dataset):
    def __init__(self, path):
        self.rows, broken = [], 0
        with open(path, encoding="utf-8") as f:
            for line in f:
                try:
                    row = json.loads(line)
                    row["events"], row["label"]
                except (json.JSONDecodeError, KeyError):
                    broken += 1
                    continue
                self.rows.append(row)
        if broken:
            warnings.warn(f"{broken} broken lines")
        self.names = sorted({r["label"] for r in self.rows if r["label"] is not None})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        if row["label"] is None:
            return None
        events = torch.tensor(row["events"], dtype=torch.float32).reshape(-1, FEATURES)
        return events, self.names.index(row["label"])


def collate(samples):
    samples = [s for s in samples if s is not None]
    if not samples:
        return None
    longest = max(1, max(len(e) for e, _ in samples))
    x = torch.zeros(len(samples), longest, FEATURES)
    mask = torch.zeros(len(samples), longest, dtype=torch.bool)
    for i, (events, _) in enumerate(samples):
        x[i, :len(events)] = events
        mask[i, :len(events)] = True
    return x, mask, torch.tensor([label for _, label in samples])


class Pool(nn.Module):
    def __init__(self, classes, width=32):
        super().__init__()
        self.each = nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU())
        self.none = nn.Parameter(torch.zeros(width))
        self.out = nn.Linear(2 * width, classes)

    def forward(self, x, mask):
        h = self.each(x)
        count = mask.sum(1, keepdim=True)
        mean = (h * mask[..., None]).sum(1) / count.clamp(min=1)
        top = h.masked_fill(~mask[..., None], float("-inf")).amax(1)
        empty = count == 0
        top = torch.where(empty, torch.zeros_like(top), top)
        return self.out(torch.cat([torch.where(empty, self.none, mean), top], 1))


def main(path, epochs=150):
    torch.manual_seed(0)
    data = Events(path)
    loader = DataLoader(data, 8, shuffle=True, collate_fn=collate)
    single = DataLoader(data, 1, collate_fn=collate)
    model = Pool(len(data.names))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(epochs):
        seen, total = 0, 0.0
        for batch in loader:
            if batch is None:
                continue
            x, mask, y = batch
            loss = nn.functional.cross_entropy(model(x, mask), y)
            if not torch.isfinite(loss):
                continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(y)
            total += loss.item() * len(y)
        print(epoch, total / seen)
    model.eval()
    right = [int(model(b[0], b[1]).argmax() == b[2][0]) for b in single if b is not None]
    print("accuracy", sum(right) / len(right))


if __name__ == "__main__":
    main(sys.argv[1])
