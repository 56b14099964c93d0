"""The memory of GPUs that are not there, counted by storage: what passes it ends in torch's own error.

A storage takes multiples of 512 bytes, as torch's allocator gives them. What the allocator keeps beyond that,
and what a CUDA context takes, is not counted.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

HOST = -1
"""The place of what is on no GPU."""
_BLOCK = 512
_REFUSED = re.compile(r"you tried to allocate (\d+) bytes")


class MemoryCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows every operation: results of tensors on a GPU are on it too."""

    def __init__(self, limits: Sequence[int], current: Callable[[], int]) -> None:
        """Nothing is on a GPU yet.

        Args:
            limits: bytes of each GPU.
            current: the number of the one that is used when none is named.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._limits = limits
        self._current = current
        self._places: dict[int, int] = {}
        self._used = [0] * len(limits)
        self._most = [0] * len(limits)
        self._named: int | None = None

    def used(self) -> tuple[int, int]:
        """Bytes on the current GPU now, and the most that there were."""
        place = self._current()
        return self._used[place], self._most[place]

    def place_of(self, tensor: torch.Tensor) -> int | None:
        """The GPU that a tensor is on; None for none."""
        try:
            return self._places.get(tensor.untyped_storage()._cdata)
        except (NotImplementedError, RuntimeError):  # It has no storage.
            return None

    @contextmanager
    def placing(self, place: int) -> Iterator[None]:
        """Within it, all that is made lies at a place.

        Raises:
            RuntimeError: there is no such GPU.
        """
        if place >= len(self._limits):
            raise RuntimeError("CUDA error: invalid device ordinal")
        before, self._named = self._named, place
        try:
            yield
        finally:
            self._named = before

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        place = self._named
        if place is None:
            at = (self.place_of(tensor) for tensor in given)
            place = next((number for number in at if number is not None), HOST)
        try:
            result = function(*args, **(kwargs or {}))
        except RuntimeError as error:
            wanted = _REFUSED.search(str(error))
            if wanted is None or place == HOST:
                raise
            raise self._out_of_memory(place, int(wanted[1])) from None
        if place != HOST:
            known = {tensor.untyped_storage()._cdata for tensor in given}
            for made in tree_leaves(result):
                if isinstance(made, torch.Tensor) and made.untyped_storage()._cdata not in known:
                    self._take(made, place)
        return result

    def _take(self, tensor: torch.Tensor, place: int) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        size = -(-storage.nbytes() // _BLOCK) * _BLOCK
        if key in self._places or tensor.device.type != "cpu":
            return
        if self._used[place] + size > self._limits[place]:
            raise self._out_of_memory(place, size)
        self._places[key] = place
        self._used[place] += size
        self._most[place] = max(self._most[place], self._used[place])
        weakref.finalize(storage, self._free, key, size).atexit = False

    def _free(self, key: int, size: int) -> None:
        self._used[self._places.pop(key)] -= size

    def _out_of_memory(self, place: int, wanted: int) -> torch.OutOfMemoryError:
        total, used = self._limits[place], self._used[place]
        return torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {_size(wanted)}. GPU {place} has a total capacity of "
            f"{_size(total)} of which {_size(total - used)} is free. Of the allocated memory {_size(used)} is "
            "allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
        )


def _size(number: int) -> str:
    """As torch writes it."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 1 << power:
            return f"{number / (1 << power):.2f} {unit}"
    return f"{number} bytes"
