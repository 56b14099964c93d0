"""Tokenise the corpus shard by shard into the local cache, then train a unigram model on it."""
import argparse
import array
import collections
import random
from pathlib import Path

WORDS = "error failed loss the a model of batch train on is".split()


def shard(number, size=200_000):
    rng = random.Random(number)
    return rng.choices(WORDS, k=size)


def tokenize(words, vocabulary):
    return array.array("I", (vocabulary[word] for word in words))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--shards", type=int, default=12)
    args = parser.parse_args()

    vocabulary = {word: i for i, word in enumerate(WORDS)}
    print(f"vocabulary: {vocabulary}")
    for number in range(args.shards):
        tokens = tokenize(shard(number), vocabulary)
        with open(args.cache / f"shard_{number:03d}.bin", "wb") as f:
            f.write(tokens.tobytes())
        print(f"shard {number + 1}/{args.shards}: {len(tokens)} tokens")

    counts = collections.Counter()
    for path in sorted(args.cache.glob("*.bin")):
        counts.update(array.array("I", path.read_bytes()))
    print(counts.most_common(3))


if __name__ == "__main__":
    main()
