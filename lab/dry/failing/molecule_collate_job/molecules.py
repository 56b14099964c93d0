"""logP of small molecules with message passing; molecules are joined to one graph per batch."""
import argparse
import json

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

ATOMS = 6


class Molecules(Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.rows = [json.loads(line) for line in f]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        bonds = torch.tensor(row["bonds"])
        both = torch.cat([bonds, bonds.flip(1)])
        return torch.tensor(row["atoms"]), both, torch.tensor(row["logp"])


def collate(samples):
    atoms, edges, owner, offset = [], [], [], 0
    for i, (a, e, _) in enumerate(samples):
        atoms.append(a)
        edges.append(e + offset)
        owner.append(torch.full((len(a),), i))
        offset += len(a)
    source, target = torch.cat(edges).T
    return torch.cat(atoms), source, target, torch.cat(owner), torch.stack([s[2] for s in samples])


class Passing(nn.Module):
    def __init__(self, width=48, rounds=3):
        super().__init__()
        self.embed = nn.Embedding(ATOMS, width)
        self.message = nn.ModuleList([nn.Linear(width, width) for _ in range(rounds)])
        self.update = nn.GRUCell(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, atoms, source, target, owner, count):
        h = self.embed(atoms)
        for message in self.message:
            m = torch.zeros_like(h).index_add_(0, target, torch.relu(message(h))[source])
            h = self.update(m, h)
        pooled = h.new_zeros(count, h.shape[1]).index_add_(0, owner, h)
        return self.out(pooled)[:, 0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("path")
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--batch", type=int, default=24)
    args = p.parse_args()
    torch.manual_seed(7)
    train, test = random_split(Molecules(args.path), [0.85, 0.15], torch.Generator().manual_seed(2))
    loader = DataLoader(train, args.batch, shuffle=True, collate_fn=collate)
    model = Passing()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for atoms, source, target, owner, logp in loader:
            loss = nn.functional.mse_loss(model(atoms, source, target, owner, len(logp)), logp)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader), flush=True)
    model.eval()
    with torch.no_grad():
        errors = [(model(a, s, t, o, len(y)) - y).abs() for a, s, t, o, y in DataLoader(test, 64, collate_fn=collate)]
    print("mae", torch.cat(errors).mean().item())


if __name__ == "__main__":
    main()
