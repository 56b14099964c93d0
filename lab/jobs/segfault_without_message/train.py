import sys

import numpy as np

sys.setrecursionlimit(10**9)


class Node:
    """A chain of features, compared with its successor again and again."""

    def __init__(self, value):
        self.value = value
        self.next = self

    def __eq__(self, other):
        return [self.value, self.next] == [other.value, other.next]

    __hash__ = None


rng = np.random.default_rng(0)
for epoch in range(4):
    values = rng.normal(size=1000)
    print("epoch", epoch, "spread", round(float(values.std()), 3), flush=True)
print("building the tree", flush=True)
left, right = Node(1.0), Node(1.0)
if left == right:
    print("merged")
