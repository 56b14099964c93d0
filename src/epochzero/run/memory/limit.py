"""A memory limit on any device, so that a CPU runs out of memory as a GPU does.

Counts the bytes of all live storages that torch operations take or return. Other memory of a GPU, such as
workspaces and fragmentation, is not counted.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from epochzero.errors import InputError

_active: list[simulated_limit] = []


class simulated_limit(TorchDispatchMode):  # type: ignore[no-untyped-call]  # noqa: N801 - used as a function is
    """Within ``with``, raise `torch.OutOfMemoryError` with torch's message when live bytes exceed a limit.

    >>> with epochzero.memory.simulated_limit(512 << 20) as limit:  # doctest: +SKIP
    ...     train()
    >>> limit.peak  # doctest: +SKIP
    301989888

    Attributes:
        limit: in bytes.
        now: live bytes.
        peak: largest number of live bytes so far.
    """

    def __init__(self, limit: int) -> None:
        """Create a limit; counting starts with ``with``.

        Raises:
            InputError: the limit is not positive.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        if limit <= 0:
            raise InputError(f"a memory limit of {limit} bytes: it must be positive")
        self.limit = limit
        self.now = self.peak = 0
        self.on_host = False
        self._known: dict[int, Any] = {}

    def __enter__(self) -> simulated_limit:
        _active.append(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        _active.remove(self)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operation and count its storages."""
        kwargs = kwargs or {}
        self._count((args, kwargs), host=False)
        before = self.now
        result = func(*args, **kwargs)
        self._count(result, host=self.on_host)
        if self.now > self.limit:
            words = _words(self.now - before, self.limit, before)
            del result  # a traceback would keep it alive
            raise torch.cuda.OutOfMemoryError(words)
        self.peak = max(self.peak, self.now)
        return result

    def _count(self, values: Any, *, host: bool) -> None:
        for tensor in tree_leaves(values):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self._known:
                    self._add(storage, 0 if host else storage.nbytes())

    def _add(self, storage: Any, size: int) -> None:
        key = storage._cdata
        self.now += size
        self._known[key] = weakref.ref(storage, lambda _: self._gone(key, size))

    def _gone(self, key: int, size: int) -> None:
        self._known.pop(key, None)
        self.now -= size


@contextmanager
def in_host_memory() -> Iterator[None]:
    """Within ``with``, new tensors count as CPU memory, which no simulated limit counts."""
    before = [limit.on_host for limit in _active]
    for limit in _active:
        limit.on_host = True
    try:
        yield
    finally:
        for limit, was in zip(_active, before, strict=True):
            limit.on_host = was


def limit_here() -> int | None:
    """Return the current simulated limit in bytes."""
    return _active[-1].limit if _active else None


def _words(asked: int, limit: int, used: int) -> str:
    return (
        f"CUDA out of memory. Tried to allocate {_size(asked)}. GPU 0 has a total capacity of "
        f"{_size(limit)} of which {_size(max(limit - used, 0))} is free. Of the allocated memory "
        f"{_size(used)} is allocated by PyTorch. This limit is simulated."
    )


def _size(size: int) -> str:
    """Format a size as torch does."""
    for name, unit in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"
