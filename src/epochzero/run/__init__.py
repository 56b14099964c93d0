"""Everything while a job runs: supervise it, keep what matters, retry only when it helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochzero.check import Target
    from epochzero.run.session import RunResult
    from epochzero.run.watch.live import WatchOptions

__all__ = ["run"]


def run(
    command: str | Sequence[str],
    home: str | Path,
    *,
    environment: Mapping[str, str],
    name: str = "",
    gpus: int | None = None,
    policy: str | Path = "never",
    target: Target | str | Path | None = None,
    watch: bool | WatchOptions = False,
    simulate: Target | str | Path | None = None,
    ranks: int | None = None,
    inject: Sequence[str] = (),
    capture: bool = False,
) -> RunResult:
    """Runs a job in the current folder, keeps what it leaves, and says why it failed.

    Its output, input and signals pass through. Must be called from the main thread, as
    `epochzero.run.process.supervisor.run_attempt`.

    >>> import epochzero, os
    >>> ran = epochzero.run(["python", "train.py"], "runs", environment=os.environ)  # doctest: +SKIP
    >>> ran.ended.exit_code, ran.failed.diagnosis.category  # doctest: +SKIP
    (1, 'key_not_found')

    Args:
        command: program and arguments, as a text or by words.
        home: folder in which the job is kept.
        environment: of the job.
        name: what it is called; by default its script.
        gpus: number of GPUs of the job, for its cost; None for what the scheduler reports.
        policy: decides whether a failed job is started again: ``never``, ``auto``, another one that
            comes with EpochZero, or the path of one's own.
        target: the platform that it was meant for, for what a check would report.
        watch: whether its training is watched, or how; the verdict is in `RunResult.watched`.
        simulate: the platform that the job meets here, as far as one machine can be it (`docs/simulate.md`).
        ranks: with ``simulate``: how many processes the launcher in front of the command starts here.
        inject: faults that the platform is to have, such as ``kill-rank=1@step:200``
            (`docs/simulate.md`); `RunResult.injected` says what came of each.
        capture: keep what `epochzero.replay` needs when it fails.

    Raises:
        InputError: this system cannot run jobs; nothing can be kept in the folder; a word to watch for is not known; the
            platform contradicts itself, or cannot be simulated here; a fault is none.
        CatalogError: the policy is not there, or wrong.
    """
    # The guard of a job starts in this package: it must not wait for what it does not need.
    import os
    import shlex

    from epochzero import platform
    from epochzero.errors import InputError

    if platform.WHY_NO_JOBS:
        raise InputError(platform.WHY_NO_JOBS)
    from epochzero.run.inject.grammar import parsed_all
    from epochzero.run.job import Listener
    from epochzero.run.request import RunRequest
    from epochzero.run.session import run_session
    from epochzero.run.watch.live import WatchOptions, check_words

    class Strict(Listener):
        """Refuses a job that cannot be stored where the caller wants it."""

        def stored_elsewhere(self, wanted: Path, home: Path | None) -> None:
            raise InputError(f"{wanted} cannot be written")

    options = (WatchOptions() if watch else None) if isinstance(watch, bool) else watch
    if options is not None:
        check_words(options.fail_on)
    request = RunRequest(
        command=tuple(shlex.split(command) if isinstance(command, str) else command),
        environment=environment,
        folder=os.getcwd(),
        homes=(Path(home),),
        name=name,
        gpus=gpus,
        policy=policy,
        retries="auto",
        target=target,
        watch=options,
        simulate=simulate,
        ranks=ranks,
        faults=parsed_all(inject),
        capture=capture,
    )
    return run_session(request, lambda _: Strict())
