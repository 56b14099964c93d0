"""What is found in the lab's recorded jobs: first cause, rank, user frame, fixes, false alarms.

Each job is diagnosed twice: from its logs alone, and with the facts that a scheduler knows.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from functools import partial
from typing import Any, NamedTuple

from common import LabJob, lab_jobs, rate, save
from rivals import Answer, Rival, answer_of
from rivals.choice import add_options, chosen, not_run
from split import held

from epochzero.diagnose import Diagnoser, Diagnosis, Facts, find_facts
from epochzero.logs.source import Log, find_logs

FIELDS = ("root_cause", "phase", "retry")


class Check(NamedTuple):
    """One comparison of what was found with what must be found."""

    job: str
    what: str
    right: bool
    found: str
    wanted: str


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true", help="print what was not found")
    add_options(parser)
    options = parser.parse_args()
    jobs = lab_jobs()
    rivals = chosen(options)
    diagnoser = Diagnoser()
    runs: dict[str, Callable[[LabJob], list[Check]]] = {
        "epochzero/log_only": lambda job: _checked(job, _diagnosis(diagnoser, job, facts=False)),
        "epochzero/with_facts": lambda job: _checked(
            job, _diagnosis(diagnoser, job, facts=True), facts=True
        ),
    }
    for rival in rivals:
        runs[rival.name] = partial(_rival_checked, rival)
    numbers: dict[str, Any] = {
        "jobs": len(jobs),
        "good_jobs": sum(job.good for job in jobs),
        "signatures": len(diagnoser.catalog),
    }
    for name, run in runs.items():
        checks = [check for job in jobs for check in run(job)]
        numbers[name] = _totals(checks)
        _print(name, numbers[name])
        if options.misses and name.startswith("epochzero"):
            _print_misses(checks)
    versions = {rival.name: rival.version for rival in rivals}
    data = [{"name": "lab/logs", "jobs": len(jobs)}]
    save("diagnosis_lab", numbers, data=data, rivals=versions | not_run(options))


def _diagnosis(diagnoser: Diagnoser, job: LabJob, *, facts: bool) -> Diagnosis:
    known = find_facts([job.folder]) if facts else Facts()
    return diagnoser.diagnose(find_logs([job.folder]), known)


def _checked(job: LabJob, found: Diagnosis, *, facts: bool = False) -> list[Check]:
    """Everything that a job's expectation says, compared with a diagnosis."""
    expect = job.expect
    checks = list(_answer_checks(job, answer_of(found)))
    # Without facts, a job whose log shows nothing cannot be told from one that ended well.
    if facts or expect["outcome"] != "evidence_missing":
        checks.append(_check(job, "outcome", found.outcome, expect["outcome"]))
    if expect["outcome"] != "failed":
        return checks
    checks += [
        _check(job, field, getattr(found, field), expect[field])
        for field in FIELDS
        if field in expect
    ]
    if "user_frame" in expect:
        checks.append(_frame_check(job, found))
    checks += _fix_checks(job, found)
    return checks


def _answer_checks(job: LabJob, answer: Answer) -> Iterator[Check]:
    """The comparisons that every tool can be put to."""
    expect = job.expect
    if job.good:
        yield Check(job.name, "no_false_alarm", not answer.failed, answer.text[:160], "no failure")
    if expect["outcome"] != "failed":
        return
    if answer.category:
        yield _check(job, "category", answer.category, expect["category"])
        accepted = (expect["category"], *expect.get("also", ()))
        right = answer.category in accepted
        yield Check(job.name, "category_or_also", right, answer.category, " or ".join(accepted))
    if "root_text" not in expect:
        return
    found = f"{answer.file}: {answer.text[:160]}"
    wanted = f"{expect['root_file']}: {expect['root_text']}"
    line_right = expect["root_text"] in answer.text and fnmatch(answer.file, expect["root_file"])
    yield Check(job.name, "root_line", line_right, found, wanted)
    if "root_rank" in expect:
        right = line_right and answer.rank == expect["root_rank"]
        told = f"rank {answer.rank}, {found}"
        yield Check(job.name, "root_rank_and_line", right, told, f"rank {expect['root_rank']}")


def _check(job: LabJob, what: str, found: str, wanted: str) -> Check:
    return Check(job.name, what, found == wanted, found, wanted)


def _frame_check(job: LabJob, found: Diagnosis) -> Check:
    wanted = job.expect["user_frame"]
    frame = found.user_frame
    right = (
        frame is not None
        and frame.file.endswith(wanted["file"])
        and frame.line == wanted["line"]
        and frame.function == wanted.get("function", frame.function)
    )
    return Check(job.name, "user_frame", right, str(frame), str(wanted))


def _fix_checks(job: LabJob, found: Diagnosis) -> Iterator[Check]:
    """Whether the fixes mention each of the words that a specific fix would."""
    text = " ".join(found.fixes)
    words = job.expect.get("fix_words", [])
    for word in words:
        yield Check(job.name, "fix_words", word in text, " | ".join(found.fixes)[:200], word)
    if words:
        right = any(word in text for word in words)
        yield Check(job.name, "fix_with_any_word", right, "", ", ".join(words))


def _rival_checked(rival: Rival, job: LabJob) -> list[Check]:
    facts = json.loads((job.folder / "facts.json").read_text(encoding="utf-8"))
    code: int = facts["exit_code"]
    logs: tuple[Log, ...] = find_logs([job.folder])
    return list(_answer_checks(job, rival.answer(logs, 128 - code if code < 0 else code)))


def _totals(checks: list[Check]) -> dict[str, Mapping[str, object]]:
    totals: dict[str, Mapping[str, object]] = {}
    for what in dict.fromkeys(check.what for check in checks):
        of_kind = [check for check in checks if check.what == what]
        right = sum(check.right for check in of_kind)
        totals[what] = {"n": len(of_kind), "right": right, "share": rate(right, len(of_kind))}
    return totals


def _print(name: str, totals: Mapping[str, Any]) -> None:
    print(name)
    for what, total in totals.items():
        print(f"    {what:20}{total['right']:>5} / {total['n']:<5}{total['share']:>8.3f}")


def _print_misses(checks: list[Check]) -> None:
    """Of the half that is open."""
    for check in checks:
        if not held(check.job) and not check.right and check.what != "fix_with_any_word":
            print(
                f"  {check.job} {check.what}\n      found  {check.found}\n"
                f"      wanted {check.wanted}"
            )


if __name__ == "__main__":
    main()
