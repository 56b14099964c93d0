#!/usr/bin/env python
# Builds the vocabulary and keeps every n-gram window in memory, so that the epochs are fast.
import random
import sys

random.seed(0)
WORDS = ["model", "layer", "loss", "epoch", "batch", "gradient", "token", "weight"]


class WindowCache:
    def __init__(self, width):
        self.width = width
        self.windows = []

    def add(self, document):
        for i in range(len(document) - self.width):
            self.windows.append(" ".join(document[i : i + self.width]) * 20)


cache = WindowCache(width=8)
for shard in range(400):
    document = random.choices(WORDS, k=2000)
    cache.add(document)
    if shard % 20 == 0:
        sys.stdout.write(f"\rshard {shard:3d}/400  {len(cache.windows):8d} windows")
        sys.stdout.flush()
print("\ndone")
