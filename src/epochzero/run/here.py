"""A job that is run from Python, with nobody to tell: what it leaves is remembered."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.run.attempts import run_job
from epochzero.run.identity import attempt_folder, name_of
from epochzero.run.job import Failed, Job, Kept, first_record
from epochzero.run.journal import Journal
from epochzero.run.launchers import launch_of
from epochzero.run.model import Ended, Event
from epochzero.run.watch.live import News, TrainingWatcher, WatchOptions, check_words
from epochzero.run.watcher import Watcher

if TYPE_CHECKING:
    from epochzero.check import CheckResult, Target
    from epochzero.locate import Ranking
    from epochzero.run.inject.outcome import Outcome
    from epochzero.run.simulate.model import Aspect
    from epochzero.run.watch.model import Watched

__all__ = ["Ran", "run_here"]


@dataclass(frozen=True, slots=True)
class Ran:
    """A job that was run.

    Attributes:
        job: its identity.
        ended: how its last attempt ended.
        failed: what its last failed attempt failed with; None when none did.
        folders: where its attempts are kept.
        watched: the verdict on the training of its last attempt; None where none was watched.
        injected: what came of each injected fault, attempt by attempt.
    """

    job: str
    ended: Ended
    failed: Failed | None
    folders: tuple[Path, ...]
    watched: Watched | None = None
    injected: tuple[Outcome, ...] = ()


def run_here(
    command: Sequence[str],
    home: Path,
    environment: Mapping[str, str],
    *,
    name: str = "",
    gpus: int = 0,
    policy: str | Path = "never",
    target: Target | str | Path | None = None,
    watch: bool | WatchOptions = False,
    simulate: Target | str | Path | None = None,
    ranks: int | None = None,
    inject: Sequence[str] = (),
    capture: bool = False,
) -> Ran:
    """See `epochzero.run.run`."""
    from epochzero.run.inject.grammar import parsed_all
    from epochzero.run.retry import load_policy
    from epochzero.run.watch.methods import by_name

    simulation = None
    if simulate is not None:
        from epochzero.run.simulate.plan import options_of

        simulation = options_of(simulate, command, os.getcwd(), environment, ranks=ranks)
        target = simulation.target

    faults = parsed_all(inject)
    chosen = load_policy(policy)
    options = (WatchOptions() if watch else None) if isinstance(watch, bool) else watch
    if options is not None:
        check_words(options.fail_on)
        by_name(options.method)
    name = name or name_of(command)
    launch = launch_of(environment, name)
    started = first_record(
        command,
        launch,
        name=name,
        gpus=gpus,
        folder=os.getcwd(),
        target=_name(target),
    )
    listener = _Silent()

    def keep(attempt: int) -> Kept:
        while (folder := attempt_folder(home, launch.job, attempt, launch.rank)).exists():
            attempt += 1
        listener.folders.append(folder)
        return folder, Journal(folder), attempt

    job = Job(
        started,
        environment,
        policy=lambda: chosen,
        target=target,
        watch=options,
        simulate=simulation,
        faults=faults,
        capture=capture,
    )
    ended, _ = run_job(job, keep, listener)
    return Ran(
        launch.job,
        ended,
        listener.last,
        tuple(listener.folders),
        listener.verdict,
        tuple(listener.outcomes),
    )


def _name(target: Target | str | Path | None) -> str:
    if target is None:
        return ""
    return str(target) if isinstance(target, str | Path) else target.name


class _Silent:
    """A listener that only remembers."""

    def __init__(self) -> None:
        self.last: Failed | None = None
        self.verdict: Watched | None = None
        self.folders: list[Path] = []
        self.outcomes: list[Outcome] = []

    def begins(self, journal: Journal | None) -> Sequence[Watcher]:
        return ()

    def failed(self, failed: Failed) -> None:
        self.last = failed

    def explained(self, ranking: Ranking | None, checked: CheckResult | None) -> None:
        pass

    def noted(self, event: Event) -> None:
        pass

    def found(self, news: News) -> None:
        pass

    def hung(self, event: Event) -> None:
        pass

    def watched(self, training: TrainingWatcher) -> None:
        self.verdict = training.watched

    def injected(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes += outcomes

    def simulates(self, aspects: Sequence[Aspect]) -> None:
        pass

    def waits(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True

    def ends(self, journal: Journal | None) -> None:
        pass
