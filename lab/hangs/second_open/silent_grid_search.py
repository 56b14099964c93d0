"""Ranks: 2. Each rank fits models of its own in Python, one longer than the other."""

import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
print("start", flush=True)


def fit(seconds):
    end = time.monotonic() + seconds
    weights = [0.0] * 64
    while time.monotonic() < end:
        weights = [weight * 0.9 + 0.1 * n for n, weight in enumerate(weights)]
    return sum(weights)


scores = [fit(12 + 3 * dist.get_rank()) for _ in range(3)]
dist.all_reduce(torch.tensor(scores))
print("done", flush=True)
dist.destroy_process_group()
