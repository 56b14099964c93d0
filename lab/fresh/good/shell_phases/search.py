"""Nearest neighbors in a learned space."""

import argparse
import json

import torch
from torch import nn

try:
    import faiss
except ImportError:
    faiss = None


def read(path):
    with open(path) as handle:
        rows = [json.loads(line) for line in handle]
    notes = [row.get("note", "") for row in rows]
    return torch.tensor([row["vector"] for row in rows]), [row["id"] for row in rows], notes


class PlainIndex:
    def __init__(self, size):
        self.vectors = torch.empty(0, size)

    def add(self, vectors):
        self.vectors = torch.cat([self.vectors, vectors])

    def search(self, queries, count):
        return torch.cdist(queries, self.vectors).topk(count, largest=False)


def make_index(kind, size):
    if kind == "faiss" and faiss is not None:
        return faiss.IndexFlatL2(size)
    return PlainIndex(size)


def main():
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--near", type=int, required=True)
    parser.add_argument("--index", choices=("faiss", "plain"))
    parser.add_argument("--train")
    parser.add_argument("--test")
    args = parser.parse_args()
    vectors, ids, _ = read(args.train)
    encoder = nn.Linear(8, args.size)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    triplet = nn.TripletMarginLoss()
    labels = torch.tensor(ids) % 3
    for _ in range(10):
        space = encoder(vectors)
        same = torch.stack([space[(labels == label).nonzero()[0, 0]] for label in labels])
        other = torch.stack([space[(labels != label).nonzero()[0, 0]] for label in labels])
        loss = triplet(space, same, other)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    queries, names, notes = read(args.test)
    with torch.no_grad():
        index = make_index(args.index, args.size)
        index.add(encoder(vectors))
        _, found = index.search(encoder(queries), args.near)
    result = {name: [ids[i] for i in row] for name, row in zip(names, found.tolist())}
    with open("found.json", "w") as handle:
        json.dump(result, handle)


if __name__ == "__main__":
    main()
