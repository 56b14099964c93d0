"""What retries cost and save under several policies, simulated over failures whose truth is known.

Each case is a real failure with its label: it fails again, or it may succeed. A case that fails again
does so at every attempt; one that may succeed does so at each retry with a probability p, which no
log tells: 0.7 is assumed, 0.33 (the share of automatic retry chains that succeeded on 504 GPUs, arXiv
2605.09370) and 0.9 stand beside it. What a policy sees is our diagnosis of the log (OpenPAI: its own
rules), the same after every attempt. A failed retry costs the same time as the attempt before.
No report tells how long its attempt ran: an hour on average is assumed, and less or more by the phase of the failure, as GPU
time is spread over failures in Zhang et al., ICSE 2020, Figure 10: 105 s in initialization, 3.5 hours in evaluation.

Time is weighted in three ways: every attempt the same; by the phase of the failure; and by the GPU hours of the case. Wasted is the time of
retries that failed. *Saved* also counts failed retries of recoverable jobs, which every policy that recovers them needs: with as many
recoverable cases as others a perfect policy saves 88 %. *Avoided* counts the retries of failures that come again
only. Given up is a recoverable job that always retrying three times would have saved. The policies
were written with the half of the projects in view that is not held out. `lab/retries` holds failures that pass and
twins of them that come again; its held-out half was written before the reader of subjects. The programs of the lab's jobs are read for
numbers that nothing seeds, as `epochzero run` does after a failure; those of the labelled reports are not there.
`torchrun --max-restarts 3` starts every failure again three times, as always-3 does.
"""

from __future__ import annotations

import argparse
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from common import LAB, DataFile, data_file, lab_jobs, rate, save
from rivals.nvrx import Nvrx
from rivals.openpai import OpenPai
from split import held

from epochzero.diagnose import Diagnoser, Diagnosis, find_facts
from epochzero.errors import InputError
from epochzero.logs.source import Log, find_logs
from epochzero.run.observers.progress import told
from epochzero.run.records.model import Start
from epochzero.run.retry import PastAttempt, Precedents, decide, load_policy, subject, unseeded

POLICIES = ("always-3", "never", "auto")
# Share of GPU time over share of failures, Figure 10.
PHASE_WEIGHTS = {
    "initialization": 0.9 / 30.8,
    "preprocessing": 1.4 / 30.0,
    "training": 12.9 / 15.0,
    "evaluation": 84.8 / 24.3,
}
MEAN_S = 3600.0
PROBABILITIES = (0.7, 0.33, 0.9)
MOST_ATTEMPTS = 50
HALVES = (
    "open",
    "held_out",
    "second_open",
    "second_held_out",
    "third_open",
    "third_held_out",
)
HELD = ("second_held_out", "third_held_out")
"""Not printed by `--open`."""
LONG_S = 900
CHECKPOINT_S = 1800.0
"""A job that writes checkpoints is taken to have written its last one half an hour ago."""
LOOKS = 7
"""At the held-out twins, whose first look is in `results/earlier`; the second set was opened with the third, the third set
with the fourth."""

Retries = Callable[["Case"], int]
"""How often a policy starts a case again if it always fails the same way."""


@dataclass(frozen=True, slots=True)
class Case:
    """A failure with its truth.

    Attributes:
        name: identity; its project decides whether it is held out.
        recoverable: whether the same job may succeed.
        phase: the true one.
        attempt: what a policy sees of it.
        restarts: how often each rival starts it again.
    """

    name: str
    recoverable: bool
    phase: str
    attempt: PastAttempt
    restarts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Rivals:
    """Those that were fetched."""

    openpai: OpenPai | None
    nvrx: Nvrx | None

    def restarts(self, logs: Sequence[Log], exit_code: int | None = None) -> Mapping[str, int]:
        """How often each starts a failed job again: a restart is taken as three, as are those without end."""
        found = {}
        if self.openpai is not None:
            never = self.openpai.reaction(logs, exit_code) == "NEVER_RETRY"
            found["openpai"] = 0 if never else 3
        if self.nvrx is not None:
            found["nvrx"] = 3 if self.nvrx.restarts(logs) else 0
        return found

    @property
    def versions(self) -> Mapping[str, str]:
        """Commits of their clones."""
        both = {"openpai": self.openpai, "nvrx": self.nvrx}
        return {name: rival.version if rival else "not run" for name, rival in both.items()}


def main() -> None:
    """Simulates, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--openpai", type=Path, metavar="DIR", help="clone of microsoft/pai")
    parser.add_argument(
        "--nvrx", type=Path, metavar="DIR", help="clone of NVIDIA/nvidia-resiliency-ext"
    )
    parser.add_argument("--open", action="store_true", help="open halves only; nothing is saved")
    parser.add_argument("--misses", action="store_true", help="print what is decided wrongly")
    options = parser.parse_args()
    workspace = tempfile.TemporaryDirectory()
    rivals = Rivals(
        OpenPai(options.openpai) if options.openpai else None,
        Nvrx(options.nvrx, Path(workspace.name)) if options.nvrx else None,
    )
    labelled = data_file("failures/labelled.jsonl.gz")
    if options.open:
        opened = {
            f"twins/{half}": list(_twins(half, rivals)) for half in HALVES if half not in HELD
        }
        for part, cases in (*opened.items(), ("own/open", _open(labelled, rivals))):
            _print(part, _measured(cases))
            _print_misses(cases)
        return
    twins = {half: list(_twins(half, rivals)) for half in HALVES}
    sets: dict[str, Sequence[Case]] = {
        "labelled": list(_labelled(labelled.records, rivals)),
        "lab": list(_lab(rivals)),
    }
    numbers: dict[str, Any] = {"probability": PROBABILITIES[0], "looks_at_twins_held_out": LOOKS}
    twin_parts = ((f"twins/{half}", twins[half]) for half in HALVES)
    for part, of_part in (*_parts(sets), *twin_parts):
        numbers[part] = _measured(of_part)
        _print(part, numbers[part])
    if options.misses:
        _print_misses(case for cases in sets.values() for case in cases)
    save(
        "retry_policies",
        numbers,
        data=[
            labelled.described(),
            {"name": "lab/logs", "jobs": len(sets["lab"])},
            {"name": "lab/retries", "cases": sum(map(len, twins.values()))},
        ],
        rivals=rivals.versions,
    )


def _parts(sets: Mapping[str, Sequence[Case]]) -> Iterable[tuple[str, Sequence[Case]]]:
    everything = [case for cases in sets.values() for case in cases]
    for name, cases in (*sets.items(), ("all", everything)):
        yield name, cases
        yield f"{name}/held_out", [case for case in cases if held(case.name)]


def _labelled(records: Sequence[Mapping[str, Any]], rivals: Rivals) -> Iterable[Case]:
    diagnoser = Diagnoser()
    for record in records:
        label = record["label"]
        if label["retry"] == "unknown":
            continue
        logs = [Log("log", text=record["log"].encode())]
        attempt = _attempt(diagnoser.diagnose(logs), logs, _seconds(label["phase"]))
        restarts = rivals.restarts(logs)
        yield Case(record["id"], label["retry"] == "may_succeed", label["phase"], attempt, restarts)


def _lab(rivals: Rivals) -> Iterable[Case]:
    diagnoser = Diagnoser()
    for job in lab_jobs():
        retry = job.expect.get("retry", "unknown")
        if job.good or retry == "unknown":
            continue
        logs, facts = find_logs([job.folder]), find_facts([job.folder])
        diagnosis = diagnoser.diagnose(logs, facts)
        phase = job.expect.get("phase", "unknown")
        attempt = _attempt(_as_run(diagnosis), logs, _seconds(phase), LAB / "jobs" / job.name)
        if _draws(diagnosis, job.name):
            attempt = replace(attempt, evidence=attempt.evidence | {"unseeded"})
        restarts = rivals.restarts(logs, facts.exit_status)
        yield Case(job.name, retry == "may_succeed", phase, attempt, restarts)


def _twins(half: str, rivals: Rivals) -> Iterable[Case]:
    diagnoser = Diagnoser()
    written = tomllib.loads((LAB / "retries" / f"{half}.toml").read_text(encoding="utf-8"))
    for case in written["cases"]:
        logs = [Log("log", text=case["log"].encode())]
        diagnosis = diagnoser.diagnose(logs)
        attempt = _attempt(diagnosis, logs, case["seconds"])
        known = Precedents(**case.get("history", {})).evidence
        attempt = replace(attempt, gpus=case["gpus"], evidence=attempt.evidence | known)
        restarts = rivals.restarts(logs)
        phase = "training" if case["seconds"] > LONG_S else "initialization"
        phase = case.get("phase", phase)
        yield Case(case["name"], case["recoverable"], phase, attempt, restarts)


def _open(labelled: DataFile, rivals: Rivals) -> list[Case]:
    cases = (*_labelled(labelled.records, rivals), *_lab(rivals))
    return [case for case in cases if not held(case.name)]


def _seconds(phase: str) -> float:
    """How long an attempt that failed in a phase ran; the mean if it is unknown."""
    return MEAN_S * PHASE_WEIGHTS.get(phase, 1.0)


def _attempt(
    diagnosis: Diagnosis, logs: Iterable[Log], seconds: float, folder: Path | None = None
) -> PastAttempt:
    """With what `epochzero run` reads of checkpoints and epochs."""
    lines = (line for log in logs for block in log.blocks() for line in block.data.splitlines())
    told_of = [told(line.decode("utf-8", "replace")) for line in lines]
    epochs = [found["epoch"] for found in told_of if "epoch" in found]
    completed = epochs[-1] - epochs[0] if epochs else 0.0
    checkpoint = any("checkpoint" in found for found in told_of)
    environment = subject(diagnosis, seconds, epochs=completed, folder=folder)
    return PastAttempt.of(
        diagnosis,
        checkpoint=checkpoint,
        evidence=("environment",) if environment else (),
        seconds=seconds,
        since_checkpoint=min(seconds, CHECKPOINT_S) if checkpoint else None,
        gpus=1,
    )


def _as_run(diagnosis: Diagnosis) -> Diagnosis:
    """With the paths that a run of the job has, in place of those of the recorded logs."""
    frames = (replace(frame, file=frame.file.removeprefix("/job/")) for frame in diagnosis.stack)
    return replace(diagnosis, stack=tuple(frames))


def _draws(diagnosis: Diagnosis, name: str) -> bool:
    """Whether the job's program draws numbers that nothing seeds where it failed."""
    folder = LAB / "jobs" / name
    command = tomllib.loads((folder / "job.toml").read_text(encoding="utf-8"))["command"]
    frame = diagnosis.user_frame
    if frame is not None:
        # Its folder's name in the recorded logs.
        frame = replace(frame, file=frame.file.removeprefix("/job/"))
    started = Start(name, 1, name, tuple(command), str(folder), "", "", 1, 0.0)
    try:
        return bool(unseeded(replace(diagnosis, user_frame=frame), started))
    except InputError:
        return False


def _retries(policy_name: str) -> Retries:
    policy = load_policy(policy_name)

    def count(case: Case) -> int:
        history = [case.attempt]
        while len(history) < MOST_ATTEMPTS and decide(policy, history).action != "stop":
            history.append(history[0])
        return len(history) - 1

    return count


def _restarts(rival: str, case: Case) -> int:
    return case.restarts[rival]


def _measured(cases: Sequence[Case]) -> dict[str, Any]:
    policies: dict[str, Retries] = {name: _retries(name) for name in POLICIES}
    for rival in cases[0].restarts:
        policies[rival] = partial(_restarts, rival)
    recoverable = [case for case in cases if case.recoverable]
    always = {case.name: policies["always-3"](case) for case in cases}
    return {
        "cases": len(cases),
        "recoverable": len(recoverable),
        "policies": {
            name: _of_policy(cases, {case.name: retries(case) for case in cases}, always)
            for name, retries in policies.items()
        },
    }


def _of_policy(
    cases: Sequence[Case], retries: Mapping[str, int], always: Mapping[str, int]
) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    fatal = [case for case in cases if not case.recoverable]
    for p in PROBABILITIES:
        for weighting, weight in WEIGHTS.items():
            wasted = sum(weight(case) * _failed_retries(case, retries, p) for case in cases)
            most = sum(weight(case) * _failed_retries(case, always, p) for case in cases)
            numbers[f"saved/{weighting}/p{p}"] = rate(most - wasted, most)
            vain = sum(weight(case) * retries[case.name] for case in fatal)
            all_vain = sum(weight(case) * always[case.name] for case in fatal)
            numbers[f"avoided/{weighting}"] = rate(all_vain - vain, all_vain)
        kept = sum(_success(case, retries, p) for case in cases if case.recoverable)
        could = sum(_success(case, always, p) for case in cases if case.recoverable)
        numbers[f"given_up/p{p}"] = rate(could - kept, could)
    never_tried = sum(retries[case.name] == 0 for case in cases if case.recoverable)
    return numbers | {"recoverable_never_retried": never_tried}


def _failed_retries(case: Case, retries: Mapping[str, int], p: float) -> float:
    """Expected number of retries that fail."""
    if not case.recoverable:
        return retries[case.name]
    return sum((1 - p) ** n for n in range(1, retries[case.name] + 1))


def _success(case: Case, retries: Mapping[str, int], p: float) -> float:
    return 1 - (1 - p) ** retries[case.name]


def _same(_: Case) -> float:
    return 1.0


def _by_phase(case: Case) -> float:
    """A case of unknown phase has the mean weight, which is 1."""
    return PHASE_WEIGHTS.get(case.phase, 1.0)


def _gpu_hours(case: Case) -> float:
    """What a retry of the case costs until it fails again."""
    return case.attempt.gpus * case.attempt.lost_hours


WEIGHTS = {"same": _same, "by_phase": _by_phase, "gpu_hours": _gpu_hours}


def _print(part: str, numbers: Mapping[str, Any]) -> None:
    print(f"{part}: {numbers['cases']} cases, {numbers['recoverable']} recoverable")
    for name, found in numbers["policies"].items():
        p = f"p{PROBABILITIES[0]}"
        saved = ", ".join(f"{how} {found[f'saved/{how}/{p}'] or 0:.3f}" for how in WEIGHTS)
        avoided = ", ".join(f"{how} {found[f'avoided/{how}'] or 0:.3f}" for how in WEIGHTS)
        print(f"  {name:10} saved: {saved}; avoided: {avoided}; given up {found[f'given_up/{p}']}")


def _print_misses(cases: Iterable[Case]) -> None:
    """Of the half that is open."""
    count = _retries("auto")
    for case in cases:
        if case.recoverable is (count(case) == 0):
            a = case.attempt
            truth = "may succeed" if case.recoverable else "fails again"
            print(f"  {case.name}: {truth}; read as {a.retry}, {a.category}, {a.basis}")


if __name__ == "__main__":
    main()
