"""A run from request to result: the one way through, for the command line and for Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.errors import InputError
from epochzero.run.attempts import Attempts
from epochzero.run.job import FailedAttempt, Kept, Listener, PlannedJob, first_record
from epochzero.run.records.identity import attempt_folder, name_of
from epochzero.run.records.journal import Journal
from epochzero.run.records.launch import ELASTIC_FOLDER, Launch, gpus_of, launch_of
from epochzero.run.records.model import Decision, End
from epochzero.run.request import DEFAULT_POLICY, RunRequest

if TYPE_CHECKING:
    from epochzero.run.inject.outcome import InjectionOutcome
    from epochzero.run.retry import Policy
    from epochzero.run.simulate.model import SimulationOptions
    from epochzero.run.watch.model import WatchResult


@dataclass(frozen=True, slots=True)
class RunResult:
    """A job that was run.

    Attributes:
        job: its identity.
        attempt: number of its last attempt.
        ended: how its last attempt ended.
        decision: about a retry after the last attempt; None when none was needed or possible.
        failed: the failure of its last failed attempt; None when none failed.
        folders: the directories of its attempts.
        watched: the verdict on the training of its last attempt; None when it was not watched.
        injected: the outcome of each injected fault, attempt by attempt.
    """

    job: str
    attempt: int
    ended: End
    decision: Decision | None
    failed: FailedAttempt | None
    folders: tuple[Path, ...]
    watched: WatchResult | None = None
    injected: tuple[InjectionOutcome, ...] = ()


def run_session(request: RunRequest, listener: Callable[[PlannedJob], Listener]) -> RunResult:
    """Runs a job until it succeeds, or until its policy or a person stops it.

    Must be called from the main thread (`epochzero.run.process.supervisor.run_attempt`).

    Args:
        request: what to run.
        listener: makes the listener of the job, which receives its events.

    Raises:
        InputError: the policy, the fault to watch for or the platform is invalid, or the listener
            refuses a job that cannot be stored.
        CatalogError: the policy does not exist, or is wrong.
    """
    # Loading a policy takes a moment, which only a caller who asks for one has to wait for.
    is_default = request.policy == DEFAULT_POLICY and request.retries == "advise"
    policy = cache(lambda: _policy(request))
    if not is_default:
        policy()
    name = request.name or name_of(request.command)
    launch = launch_of(request.environment, name)
    simulation = _simulation(request)
    target = simulation.target if simulation is not None else request.target
    job = PlannedJob(
        request if simulation is None else replace(request, target=target),
        first_record(
            request.command,
            launch,
            name=name,
            gpus=gpus_of(request.environment) if request.gpus is None else request.gpus,
            folder=request.folder,
            target=_target_name(request.target if request.target is not None else target),
        ),
        policy,
        simulation,
    )
    return _run(job, launch, listener(job))


def _run(job: PlannedJob, launch: Launch, listener: Listener) -> RunResult:
    attempts = Attempts(job, listener)
    folders: list[Path] = []
    number = job.started.attempt
    while True:
        folder, journal, number = _store(job.request, replace(launch, attempt=number), listener)
        if folder is not None:
            folders.append(folder)
        ended, decision = attempts.run(number, folder, journal)
        if journal is not None:
            journal.close()
        listener.ends(journal)
        again = decision is not None and decision.action != "stop" and job.starts_again(ended)
        if decision is None or not again or not listener.waits(decision.after):
            break
        number += 1
    attempts.close(ended, decision)
    return RunResult(
        launch.job,
        number,
        ended,
        decision,
        attempts.failed,
        tuple(folders),
        attempts.watched,
        tuple(attempts.outcomes),
    )


def _store(request: RunRequest, launch: Launch, listener: Listener) -> Kept:
    """The attempt's directory, its journal and its number; a job runs also where nothing can be stored."""
    wanted = request.homes[0]
    for home in request.homes:
        for attempt in count(launch.attempt):
            folder = attempt_folder(home, launch.job, attempt, launch.rank)
            try:
                folder.mkdir(parents=True, mode=0o700)
                (folder / ELASTIC_FOLDER).mkdir()
                journal = Journal(folder)
            except FileExistsError:
                if folder.is_dir():
                    continue
                break
            except (OSError, InputError):
                break
            if home is not wanted:
                listener.stored_elsewhere(wanted, home)
            return folder, journal, attempt
    listener.stored_elsewhere(wanted, None)
    return None, None, launch.attempt


def _policy(request: RunRequest) -> Policy:
    """The policy that the request asks for."""
    from epochzero.run.retry import load_policy

    if isinstance(request.retries, int) and request.retries:
        always = load_policy("always-3")
        rules = tuple(replace(rule, retries=request.retries) for rule in always.rules)
        name = f"always-{request.retries}"
        return replace(always, name=name, rules=rules, most=request.retries)
    return load_policy("never" if request.retries in ("never", 0) else request.policy)


def _simulation(request: RunRequest) -> SimulationOptions | None:
    """How the platform is simulated; None for no simulation."""
    if request.simulate is None:
        return None
    from epochzero.run.simulate.plan import options_of

    place = request.homes[0] / "environments" if request.build_packages else None
    return options_of(
        request.simulate,
        request.command,
        request.folder,
        request.environment,
        ranks=request.ranks,
        build_in=place,
    )


def _target_name(target: object) -> str:
    if target is None:
        return ""
    return str(target) if isinstance(target, str | Path) else str(getattr(target, "name", ""))
