"""Where samples come from."""

from abc import ABC, abstractmethod

import torch
from torch.utils.data import Dataset, IterableDataset


class Source(Dataset, ABC):
    @abstractmethod
    def sample(self, index): ...

    def __getitem__(self, index):
        return self.sample(index)

    def __len__(self):
        raise NotImplementedError

    def shard(self, rank):
        raise NotImplementedError("only remote sources have shards")


class Local(Source):
    def __init__(self, count=64):
        self.count = count

    def sample(self, index):
        if index >= self.count:
            raise IndexError(index)
        x = torch.full((4,), float(index % 5))
        return {"x": x, "y": x.sum()}

    def __len__(self):
        return self.count


class Remote(Source, ABC):
    @property
    @abstractmethod
    def address(self): ...


class Stream(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        start = info.id if info is not None else 0
        yield from ({"x": torch.ones(4) * i, "y": torch.tensor(4.0 * i)} for i in range(start, start + 8))


def collate(samples):
    return {key: torch.stack([sample[key] for sample in samples]) for key in samples[0]}
