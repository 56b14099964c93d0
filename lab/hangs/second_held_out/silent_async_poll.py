"""Ranks: 2. Rank 1 asks a labelling service every two seconds, in an event loop, until its job is complete."""

import asyncio

import torch.distributed as dist

dist.init_process_group("gloo")
print("start", flush=True)


async def labelled():
    for _ in range(25):
        await asyncio.sleep(2)


if dist.get_rank() == 1:
    asyncio.run(labelled())
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
