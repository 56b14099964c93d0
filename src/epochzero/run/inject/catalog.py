"""The faults that can be injected. A new fault is a new entry here and the code that triggers it.

Faults with ``inside`` occur in the job's own Python (`epochzero.run.inject.child`); the others are signals to its
processes, as from a kernel or a scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Value = Literal["", "rank", "duration", "word"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault.

    Attributes:
        does: its effect, as a sentence.
        value: what may follow ``=``; empty if nothing may.
        default: default value; empty if a value is required.
        words: allowed values.
        options: options with a duration, each with its default; None if there is none.
        times: whether it can be due at a time, and not only at a step.
        inside: whether it happens in the job's Python.
        needs: module without which it cannot happen there.
    """

    does: str
    value: Value = ""
    default: str = ""
    words: tuple[str, ...] = ()
    options: Mapping[str, float | None] = field(default_factory=dict)
    times: bool = True
    inside: bool = False
    needs: str = ""


KINDS: Mapping[str, Kind] = {
    "kill-rank": Kind("the process of a rank is killed", value="rank", default="0"),
    "host-oom": Kind("the kernel kills the process that holds the most memory"),
    "preempt": Kind(
        "the scheduler sends SIGTERM to the job, and SIGKILL after the notice",
        options={"notice": 30.0},
    ),
    "disk-full": Kind("writes to files fail with ENOSPC", options={"for": None}, inside=True),
    "network-drop": Kind(
        "other hosts are unreachable; connections to them fail or hang",
        value="word",
        default="fail",
        words=("fail", "hang"),
        options={"for": None},
        inside=True,
    ),
    "slow-storage": Kind(
        "each read from a file is delayed by the given duration",
        value="duration",
        options={"for": None},
        inside=True,
    ),
    "oom": Kind(
        "the forward pass fails to allocate GPU memory", times=False, inside=True, needs="torch"
    ),
}
