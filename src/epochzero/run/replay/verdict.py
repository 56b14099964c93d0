"""Compares a replay with its capture: same failure, exactness of losses, other differences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from epochzero.run.replay.differences import OF_GPU, other_version
from epochzero.run.replay.model import Capture, Position, ReplayFailure

ANEW = (
    "variables of the script, such as counters, were initialized again: only the training state is "
    "restored from the snapshot"
)
"""Differences that can prevent a failure from occurring after a jump."""
FED = "its standard input was a pipe, which is not recorded: capture the job with a file as its input (`< FILE`)"
"""Differences that can prevent a failure from occurring at all."""
OUTSIDE = "the job was terminated from outside: the replay reaches the same position but nothing terminates it there"
"""Why the end by a signal does not occur again."""
CLOSE = 1e-3
"""Relative difference up to which losses count as close: another device sums in a different order."""


def is_same(expected: ReplayFailure, came: ReplayFailure | None) -> bool:
    """Whether two failures have the same type and place, or the same non-finite operators."""
    if came is None or (expected.kind, expected.type) != (came.kind, came.type):
        return False
    if expected.kind == "nonfinite":
        known = bool(expected.operators and came.operators)
        return not known or expected.operators[0] == came.operators[0]
    if expected.kind == "exit" and expected.message != came.message:
        return False
    return (expected.path, expected.line) == (came.path, came.line)


class LossComparison:
    """Losses of the same backward passes in the captured run and in the replay.

    Attributes:
        count: number of compared losses.
        largest: largest difference, relative to the larger loss.
        first: backward pass, from 1, of the first loss that differs; None if none differ.
    """

    def __init__(self) -> None:
        self.count = 0
        self.largest = 0.0
        self.first: int | None = None

    @property
    def exactness(self) -> str:
        """See `ReplayResult`."""
        if not self.count:
            return "none"
        return "bits" if self.first is None else "close" if self.largest <= CLOSE else "different"

    def add(self, number: int, then: float, now: float) -> None:
        """Compare the losses of one backward pass."""
        self.count += 1
        if then == now or (math.isnan(then) and math.isnan(now)):
            return
        self.first = self.first or number
        scale = max(abs(then), abs(now))
        difference = abs(then - now) / scale if math.isfinite(scale) else math.inf
        self.largest = max(self.largest, difference)


def compared(
    then: tuple[float, ...], at: Position, now: tuple[float, ...], ended: Position
) -> LossComparison:
    """Compare losses.

    Args:
        then, now: losses of the last backward passes.
        at, ended: positions at which the two runs ended.
    """
    found = LossComparison()
    first_then, first_now = at.backwards - len(then) + 1, ended.backwards - len(now) + 1
    for number in range(max(first_then, first_now, 1), min(at.backwards, ended.backwards) + 1):
        found.add(number, then[number - first_then], now[number - first_now])
    return found


def differences(
    capture: Capture, record: Mapping[str, Any], known: Sequence[str], *, gpu: bool = False
) -> Iterator[str]:
    """Yield other differences from the captured run that may matter, one sentence each.

    Args:
        capture: the captured run.
        record: written by the process that replayed.
        known: differences that were known before the replay; they come first.
        gpu: whether GPU code ran on a GPU.
    """
    yield from known
    for name, version in record.get("versions", {}).items():
        if name in OF_GPU and not gpu:
            continue  # The simulated GPU's.
        unsaid = not any(f"{name} is " in text for text in known)
        if unsaid and capture.versions.get(name, version) != version:
            yield other_version(name, capture.versions[name], version)
    for path in record.get("later", ()):
        yield (f"{path} was read, and was written after the job started: if the job wrote it, move it away before "
"the replay")  # fmt: skip
    used_gpu = any(device.startswith("cuda") for device in capture.devices)
    if used_gpu and gpu and record.get("deterministic") is False:
        yield ("the job does not use torch.use_deterministic_algorithms: on a GPU, sums may be computed in another "
"order each time, so losses may differ")  # fmt: skip
    if used_gpu and not gpu:
        yield (f"the job ran on a GPU, the replay on a CPU: losses agree within {CLOSE:g} at best, and dropout draws "
"different numbers")  # fmt: skip
    drawn = [str(source) for source in record.get("changed", ()) if not source.startswith("os.")]
    if drawn:
        yield f"values from {', '.join(drawn)} are replayed from the recording"
    yield from map(str, record.get("notes", ()))
    yield from (f"tracking the program failed: {trouble}" for trouble in record.get("troubles", ()))
