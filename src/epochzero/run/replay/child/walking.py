"""Replays a capture and follows the operators of the step that failed."""

from __future__ import annotations

import base64
import ctypes
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from epochzero.run.replay.child.capturing import versions
from epochzero.run.replay.child.course import Course
from epochzero.run.replay.child.player import Player, Stop
from epochzero.run.replay.child.tensors import word_of
from epochzero.run.replay.child.walk import Walk

MOST_TOLD_BYTES = 1 << 23
"""Largest number of bytes of the tensors of all calls."""


class WalkingPlayer(Player):
    """A player that records the operators from the step in which the first error occurred."""

    def __init__(
        self,
        course: Course,
        manifest: Mapping[str, Any],
        tensors: Path,
        stop: Stop,
        *,
        from_snapshot: bool,
        step: int | None,
    ) -> None:
        """See `Player`."""
        super().__init__(course, manifest, tensors, stop, from_snapshot=from_snapshot, step=step)
        nonfinite = manifest["nonfinite"] or {}
        at = min(
            manifest["position"]["steps"],
            nonfinite.get("position", manifest["position"])["steps"],
        )
        self._from = at if step is None else step - 1
        self._walk = Walk(course.models)
        if not from_snapshot:
            self._begin()

    def delivers(self, loader: int, iterator: Any, deliver: Callable[[], Any]) -> Any:
        """See `Player`: it may have jumped."""
        batch = super().delivers(loader, iterator, deliver)
        self._begin()
        return batch

    def stepped(self) -> None:
        """See `Player`."""
        super().stepped()
        self._begin()

    def _begin(self) -> None:
        there = self._course.steps >= self._from and not (self._jumps and not self._jumped)
        if there and not self._walk.has_begun:
            self._walk.begin()

    def walked(self) -> dict[str, Any] | None:
        """Return the origin of the failure as JSON data; None if the step was not reached."""
        if not self._walk.has_begun:
            return None
        self._walk.end()
        record, tensors = self._walk.found(getattr(sys, "last_value", None))
        record |= {"versions": versions(), "python": sys.executable}
        if sum(t.numel() * t.element_size() for t in tensors.values()) <= MOST_TOLD_BYTES:
            record["tensors"] = {name: told_tensor(tensor) for name, tensor in tensors.items()}
        return record


def told_tensor(tensor: torch.Tensor) -> dict[str, Any]:
    """Encode a tensor as JSON data: type, shape, and its bytes in base 64."""
    tensor = tensor.contiguous()
    data = ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())
    return {
        "dtype": word_of(tensor),
        "shape": list(tensor.shape),
        "data": base64.b64encode(data).decode(),
    }
