"""Naive Bayes on movie reviews, one review a line: label, tab, text."""
import collections
import math
import pathlib


def write_corpus(path):
    """The crawler of the neighbouring team writes Latin-1."""
    lines = ["pos\ta wonderful film", "neg\tboring and long"] * 40
    lines.insert(57, "pos\tle meilleur film de l'ann\u00e9e")
    path.write_bytes("\n".join(lines).encode("latin-1"))


def read_corpus(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            label, text = line.rstrip("\n").split("\t")
            yield label, text.split()


def train(samples):
    words = collections.defaultdict(collections.Counter)
    for label, tokens in samples:
        words[label].update(tokens)
    return {label: {w: math.log(c) for w, c in counter.items()} for label, counter in words.items()}


corpus = pathlib.Path("reviews.tsv")
write_corpus(corpus)
print("training on", corpus)
print(train(read_corpus(corpus)))
