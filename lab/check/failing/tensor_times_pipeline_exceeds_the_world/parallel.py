"""Groups of ranks for tensor, pipeline and data parallelism."""

from dataclasses import dataclass
from typing import Any

import torch.distributed as dist


@dataclass
class Groups:
    tensor: Any
    data: Any


def build_groups(tensor, pipeline):
    world = dist.get_world_size()
    if world % (tensor * pipeline) != 0:
        raise ValueError(f"world size {world} is no multiple of {tensor} x {pipeline}")
    replicas = world // (tensor * pipeline)
    rank = dist.get_rank()
    found = Groups(None, None)
    for start in range(0, world, tensor):
        ranks = list(range(start, start + tensor))
        group = dist.new_group(ranks)
        if rank in ranks:
            found.tensor = group
    for offset in range(world // replicas):
        ranks = list(range(offset, world, world // replicas))
        group = dist.new_group(ranks)
        if rank in ranks:
            found.data = group
    return found
