"""Fetch the shards of a pretrained embedding and tune it."""
import urllib.request

import numpy as np

HUB = "http://127.0.0.1:29724/acme/tiny-embedding/resolve/main/"


def fetch_shard(number):
    name = f"weights-{number:05d}.bin"
    with urllib.request.urlopen(HUB + name, timeout=10) as answer:
        shard = np.frombuffer(answer.read(), dtype=np.float32)
    print(f"{name}: {shard.size} values", flush=True)
    return shard


def main():
    table = np.concatenate([fetch_shard(n) for n in range(4)]).reshape(-1, 16)
    target = np.random.default_rng(0).normal(size=table.shape)
    for step in range(100):
        table = table - 0.1 * (table - target)
    print(f"distance {np.abs(table - target).mean():.5f}")


if __name__ == "__main__":
    main()
