import zlib

from torch import nn

LABELS = ["O", "B-LOC", "I-LOC"]


def read_tokens(path, vocabulary):
    items = []
    with open(path, encoding="utf-8") as handle:
        for line in handle:
            word, label = line.rstrip("\n").split("\t")
            items.append((zlib.crc32(word.encode()) % vocabulary, LABELS.index(label)))
    return items


class Tagger(nn.Module):
    def __init__(self, vocabulary, labels, width=128):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.out = nn.Linear(width, labels)

    def forward(self, ids):
        return self.out(self.embed(ids))
