"""Capture a failing step and run it again.

capture      prepare a job so that it is captured; add what only its supervisor knows
child        code that runs in the job: capture and playback
reading      directory -> Capture, validated
since        differences from the captured run that are known before the replay
playback     Capture -> the job again, contained -> ReplayResult
verdict      compare the replay with the capture
walk_result  operators of the failing step
program      write a small program that reproduces the failure
model        Capture, ReplayResult and their parts
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochzero.run.replay.model import ReplayResult


def replay(
    job: str | Path,
    *,
    environment: Mapping[str, str],
    step: int | None = None,
    way: str = "auto",
    inspect: bool = False,
    python: str | Path | None = None,
    write: bool = False,
    gpu: bool = False,
    seconds: float | None = None,
    bisect: bool = False,
    on_differences: Callable[[Sequence[str]], object] = lambda _: None,
) -> ReplayResult:
    """Run the failing step of a captured job again and report whether the same failure occurs.

    The job's own program runs with the random states, seeds and batches of the captured run. Its writes are
    discarded, and it has no network access.

    >>> import epochzero, os
    >>> ran = epochzero.run(["python", "train.py"], "runs", environment=os.environ, capture=True)  # doctest: +SKIP
    >>> replayed = epochzero.replay(ran.folders[-1], environment=os.environ)  # doctest: +SKIP
    >>> replayed.reproduced, replayed.exactness  # doctest: +SKIP
    (True, 'bits')

    Args:
        job: directory of an attempt that ran with ``capture``, or of its capture.
        environment: supplies variables whose values were withheld as secrets.
        step: optimizer step after which to stop; by default the step at which the job failed.
        way: ``start`` runs the whole program, ``snapshot`` the batches since the last snapshot; ``auto`` runs from the
            start if that is short, and from the snapshot if the start did not reproduce the failure.
        inspect: report batch, weights, gradients and random states at the end.
        python: interpreter to use instead of the job's.
        write: allow the program to write its files and to use the network.
        gpu: run GPU code on the GPU of this machine instead of the CPU; requires ``write``, since the sandbox contains
            no GPU.
        seconds: time limit; by default ten times the duration of the job, at least 120.
        bisect: follow the operators of the failing step to the origin of the failure.
        on_differences: called before anything runs, with one sentence for each difference from the
            captured run that may matter.

    Raises:
        InputError: the capture is missing or damaged, or the requested step cannot be replayed.
    """
    from epochzero.run.replay.playback import ReplayOptions, play

    interpreter = Path(python) if python else None
    asked = ReplayOptions(step, way, inspect, interpreter, write, gpu, seconds, bisect)
    return play(Path(job), environment, asked, on_differences)
