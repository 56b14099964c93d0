"""Capture a failing step, run it again.

capture   sets up a job so that it is captured, and adds what only its supervisor knows
child     runs in the job: keeps, and plays again
reading   a folder -> Capture, read with distrust
since     what is otherwise than then, known before it runs
playing   Capture -> the job again, contained -> what came
verdict   what came beside what was captured -> ReplayResult
walked    the operators of the failing step
program   a small program that shows the failure
model     Capture, ReplayResult and their parts
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochzero.run.replay.model import ReplayResult

__all__ = ["replay"]


def replay(
    job: str | Path,
    *,
    environment: Mapping[str, str],
    step: int | None = None,
    way: str = "auto",
    inspect: bool = False,
    python: str | Path | None = None,
    write: bool = False,
    seconds: float | None = None,
    bisect: bool = False,
    on_differences: Callable[[Sequence[str]], object] = lambda _: None,
) -> ReplayResult:
    """Runs the failing step of a captured job again, and says whether the same failure came.

    The job's own program runs, with the random states, seeds and batches of then. What it writes goes
    nowhere, and it has no network.

    >>> import epochzero, os
    >>> ran = epochzero.run(["python", "train.py"], "runs", environment=os.environ, capture=True)  # doctest: +SKIP
    >>> replayed = epochzero.replay(ran.folders[-1], environment=os.environ)  # doctest: +SKIP
    >>> replayed.reproduced, replayed.exactness  # doctest: +SKIP
    (True, 'bits')

    Args:
        job: folder of an attempt that was run with ``capture``, or of its capture.
        environment: takes the place of variables whose values were kept secret.
        step: of an optimizer after which to end; by default where the job failed.
        way: ``start`` for the whole program, ``snapshot`` for the last snapshot and the batches since;
            ``auto`` takes the start where that is not far, and the snapshot if it did not suffice.
        inspect: look at batch, weights, gradients and random states at the end.
        python: that runs it, instead of the one that ran the job.
        write: let it write its files and use the network.
        seconds: most that it may take; by default ten times what the job took, at least 120.
        bisect: walk through the operators of the failing step, to the one that its failure comes from.
        on_differences: called before anything runs, with one sentence for each difference from the
            captured run that may matter.

    Raises:
        InputError: there is no capture, it is damaged, or what is asked for cannot be played.
    """
    from epochzero.run.replay.playback import Asked, play

    asked = Asked(step, way, inspect, Path(python) if python else None, write, seconds, bisect)
    return play(Path(job), environment, asked, on_differences)
