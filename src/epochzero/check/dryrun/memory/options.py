"""What the environment says of torch's caching allocator and of the workspaces of its libraries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from epochzero.check.dryrun.memory.units import MIB

UNKNOWN_CAPABILITY = (8, 0)
"""Taken where a GPU's compute capability is not known."""
_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_WORKSPACE = re.compile(r":(\d{1,9}):(\d{1,6})")


@dataclass(frozen=True, slots=True)
class AllocatorOptions:
    """Options of the caching allocator, by the names of torch's documentation (*CUDA semantics*).

    Attributes:
        expandable_segments: segments grow, page by page.
        max_split_size: blocks of this size (bytes) and more are not split; None: no limit.
        roundup_power2_divisions: by the power of two up to which it holds (in MiB; 0: beyond all)
            into how many steps a power of two is divided that sizes are rounded up to.
        not_modelled: options that are set and have no effect on the model.
    """

    expandable_segments: bool = False
    max_split_size: int | None = None
    roundup_power2_divisions: tuple[tuple[int, int], ...] = ()
    not_modelled: tuple[str, ...] = ()

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> AllocatorOptions:
        """The options of ``PYTORCH_ALLOC_CONF``, or of its old name.

        >>> AllocatorOptions.read({"PYTORCH_ALLOC_CONF": "expandable_segments:True"})
        AllocatorOptions(expandable_segments=True, max_split_size=None, \
roundup_power2_divisions=(), not_modelled=())
        """
        text = next((environment[name] for name in _VARIABLES if environment.get(name)), "")
        found = {
            name: value.strip("[]")
            for name, value in re.findall(r"([a-z_0-9]+)\s*:\s*(\[[^\]]*\]|[^,\s]+)", text)
        }
        size = found.pop("max_split_size_mb", "")
        return cls(
            expandable_segments=found.pop("expandable_segments", "").lower() == "true",
            max_split_size=int(size) * MIB if size.isdigit() else None,
            roundup_power2_divisions=_divisions(found.pop("roundup_power2_divisions", "")),
            not_modelled=tuple(sorted(found)),
        )

    def divisions(self, size: int) -> int:
        """Into how many steps the power of two below a size is divided; 1 where it is not."""
        for limit, number in self.roundup_power2_divisions:
            if limit == 0 or size <= limit * MIB:
                return number
        return 1


def _divisions(text: str) -> tuple[tuple[int, int], ...]:
    """``8``, or ``256:1,512:2,>:4``."""
    if text.isdigit():
        return ((0, int(text)),)
    pairs = re.findall(r"(\d{1,9}|>)\s*:\s*(\d{1,6})", text)
    return tuple((0 if limit == ">" else int(limit), int(number)) for limit, number in pairs)


def cublas_workspace_bytes(
    capability: tuple[int, int] | None, environment: Mapping[str, str]
) -> int:
    """The workspace of a cuBLAS handle on a stream, which cuBLASLt shares.

    Source: ``parseChosenWorkspaceSize`` of ``aten/src/ATen/cuda/CublasHandlePool.cpp`` (torch 2.11):
    ``:4096:2:16:8`` in KiB, and 32 MiB on compute capability 9, 10 and 12.

    >>> cublas_workspace_bytes((7, 5), {}), cublas_workspace_bytes((9, 0), {})
    (8519680, 33554432)
    """
    pairs = _WORKSPACE.findall(environment.get("CUBLAS_WORKSPACE_CONFIG", ""))
    if pairs:
        return sum(int(size) * int(count) for size, count in pairs) << 10
    major, _ = capability or UNKNOWN_CAPABILITY
    return 32 * MIB if major in (9, 10, 12) else (2 * 4096 + 8 * 16) << 10
