"""Skip-gram word vectors, compared with published analogies at the end."""
import argparse
import collections
import itertools
import math
import os

import numpy as np
import torch
from torch import nn

ANALOGIES = "~/corpora/analogies.txt"
SENTENCES = [
    "a king rules the land with a queen",
    "a man and a woman walk in the land",
    "the queen greets the woman and the king greets the man",
    "the river runs through the land to the sea",
]


class SkipGram(nn.Module):
    def __init__(self, words, dimension):
        super().__init__()
        self.center = nn.Embedding(words, dimension)
        self.context = nn.Embedding(words, dimension)
        nn.init.uniform_(self.center.weight, -0.5 / dimension, 0.5 / dimension)

    def forward(self, center, context, negative):
        center = self.center(center)
        positive = (center * self.context(context)).sum(-1)
        negative = torch.einsum("bd,bnd->bn", center, self.context(negative))
        return -(nn.functional.logsigmoid(positive) + nn.functional.logsigmoid(-negative).sum(-1)).mean()


def vocabulary(sentences, least=1):
    counts = collections.Counter(itertools.chain.from_iterable(s.split() for s in sentences))
    words = [word for word, count in counts.most_common() if count >= least]
    return {word: index for index, word in enumerate(words)}


def pairs(sentences, index, window):
    for sentence in sentences:
        ids = [index[word] for word in sentence.split() if word in index]
        for position, center in enumerate(ids):
            for other in range(max(0, position - window), min(len(ids), position + window + 1)):
                if other != position:
                    yield center, ids[other]


def read_analogies(path):
    questions = []
    with open(path, encoding="utf-8") as handle:
        for line in handle:
            if line.startswith(":") or not line.strip():
                continue
            questions.append(line.lower().split())
    return questions


def score(vectors, index, questions):
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    right = asked = 0
    for a, b, c, d in questions:
        if not all(word in index for word in (a, b, c, d)):
            continue
        query = vectors[index[b]] - vectors[index[a]] + vectors[index[c]]
        order = np.argsort(-vectors @ query)
        guess = next(i for i in order if i not in (index[a], index[b], index[c]))
        right += guess == index[d]
        asked += 1
    return right / asked if asked else math.nan


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dimension", type=int, default=32)
    parser.add_argument("--window", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--analogies", default=ANALOGIES)
    args = parser.parse_args()

    index = vocabulary(SENTENCES)
    data = torch.tensor(list(pairs(SENTENCES, index, args.window)))
    model = SkipGram(len(index), args.dimension)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        for chunk in data[torch.randperm(len(data))].split(64):
            negative = torch.randint(len(index), (len(chunk), 5))
            loss = model(chunk[:, 0], chunk[:, 1], negative)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    os.makedirs("vectors", exist_ok=True)
    vectors = model.center.weight.detach().numpy()
    np.save(os.path.join("vectors", "words.npy"), vectors)
    print("analogies", score(vectors, index, read_analogies(args.analogies)))


if __name__ == "__main__":
    main()
