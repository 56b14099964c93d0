"""Stars of a review from its words."""
import collections
import json
import random
import sys

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

EPOCHS, BATCH, WIDTH = 400, 32, 48


def read(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


class Vocabulary:
    def __init__(self, texts, least=2):
        counts = collections.Counter(word for text in texts for word in text.lower().split())
        self.words = ["<pad>", "<unk>"] + sorted(w for w, n in counts.items() if n >= least)
        self.index = {w: i for i, w in enumerate(self.words)}

    def encode(self, text):
        return torch.tensor([self.index.get(w, 1) for w in text.lower().split()])


class Bag(nn.Module):
    def __init__(self, words, classes):
        super().__init__()
        self.embed = nn.Embedding(words, WIDTH, padding_idx=0)
        self.score = nn.Linear(WIDTH, 1)
        self.out = nn.Linear(WIDTH, classes)

    def forward(self, ids):
        mask = ids != 0
        e = self.embed(ids)
        a = self.score(e)[..., 0].masked_fill(~mask, -1e9).softmax(1)
        return self.out((a[..., None] * e).sum(1))


def batches(rows, vocabulary, shuffle):
    rows = list(rows)
    if shuffle:
        random.shuffle(rows)
    for i in range(0, len(rows), BATCH):
        part = rows[i:i + BATCH]
        yield (pad_sequence([vocabulary.encode(r["text"]) for r in part], batch_first=True),
               torch.tensor([r["stars"] - 1 for r in part]), torch.tensor([r["helpful"] for r in part]))


def main(path):
    random.seed(0)
    torch.manual_seed(0)
    rows = read(path)
    vocabulary = Vocabulary(r["text"] for r in rows)
    cut = len(rows) * 9 // 10
    classes = len({r["stars"] for r in rows[:30]})
    print(f"{len(vocabulary.words)} words, {classes} classes")
    model = Bag(len(vocabulary.words), classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for ids, stars, helpful in batches(rows[:cut], vocabulary, True):
            loss = (nn.functional.cross_entropy(model(ids), stars, reduction="none") * helpful).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, round(total, 3))
    with torch.no_grad():
        hits = [(model(ids).argmax(1) == stars) for ids, stars, _ in batches(rows[cut:], vocabulary, False)]
    print("accuracy", torch.cat(hits).float().mean().item())


if __name__ == "__main__":
    main(sys.argv[1])
