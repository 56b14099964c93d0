"""What timing the steps of each rank costs the training: processor time of a step with and without the hooks.

One rank with gloo, and a network whose step takes about a millisecond, so that a fixed cost shows. Blocks of steps with
and without the hooks alternate in one process, since the machine does other work; the median of the paired
differences counts.

    python bench/run_steps.py
"""

from __future__ import annotations

import tempfile
import time
from statistics import median
from typing import Any

import torch
from common import save
from torch.optim import optimizer as optimizers
from torch.utils.data import DataLoader, dataloader

from epochzero.run.observers.child.steps import FOLDER_VARIABLE, begin_torch

PAIRS = 30
STEPS = 300
SIZE = 256


def main() -> None:
    """Measures, prints and saves."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    network = torch.nn.Sequential(
        torch.nn.Linear(SIZE, 2 * SIZE), torch.nn.GELU(), torch.nn.Linear(2 * SIZE, SIZE)
    )
    model = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(model.parameters())
    data: Any = torch.randn(32 * STEPS, SIZE)

    def block() -> float:
        began = time.process_time()
        for batch in DataLoader(data, batch_size=32):
            loss = model(batch).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return (time.process_time() - began) / STEPS

    iterator = dataloader._BaseDataLoaderIter
    before = (torch.autograd.backward, iterator.__next__)
    with tempfile.TemporaryDirectory() as folder:
        begin_torch(torch, {FOLDER_VARIABLE: folder})
        after = (torch.autograd.backward, iterator.__next__)
        registered = optimizers._global_optimizer_post_hooks
        hooks = dict(registered)
        block()
        pairs = []
        for _ in range(PAIRS):
            torch.autograd.backward, iterator.__next__ = after  # type: ignore[method-assign]
            registered.update(hooks)
            observed = block()
            torch.autograd.backward, iterator.__next__ = before  # type: ignore[method-assign]
            registered.clear()
            pairs.append((observed, block()))
    torch.distributed.destroy_process_group()
    more = median(observed - without for observed, without in pairs)
    numbers = {
        "pairs": PAIRS,
        "step_ms": 1000 * median(without for _, without in pairs),
        "share": median(observed / without - 1 for observed, without in pairs),
        "cost_us": 1e6 * more,
        "share_of_a_step_of_10_ms": more / 0.01,
    }
    print(numbers)
    save("run_steps", numbers)


if __name__ == "__main__":
    main()
