"""What schedulers say of an allocation, in the formats of their documentation; Slurm is in test_allocation."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from epochzero.run.scheduler import allocation_of, kubernetes, lsf, pbs
from epochzero.run.scheduler.commands import seconds


@pytest.mark.parametrize(
    ("stat", "reason", "state"),
    [
        ("RUN", "", "RUNNING"),
        ("RUN", "TERM_OWNER: job killed by owner", "CANCELLED"),
        ("EXIT", "TERM_RUNLIMIT: job killed after reaching LSF run time limit", "TIMEOUT"),
        (
            "EXIT",
            "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit",
            "OUT_OF_MEMORY",
        ),
        ("EXIT", "TERM_PREEMPT: job killed after preemption", "PREEMPTED"),
        ("PEND", "", "REQUEUED"),
        ("EXIT", "", "FAILED"),
        ("DONE", "", "COMPLETED"),
    ],
)
def test_a_job_of_lsf(stat: str, reason: str, state: str) -> None:
    found = lsf.parse_job(
        {"JOBID": "9", "STAT": stat, "EXIT_REASON": reason, "TIME_LEFT": "1:05 L"}
    )
    assert found.state == state
    assert found.runs is (state == "RUNNING")
    assert found.seconds_left == 3900


def test_bjobs_is_asked_for_the_element_of_an_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"COMMAND": "bjobs", "JOBS": 1, "RECORDS": [{"JOBID": "9", "STAT": "RUN"}]}
    (tmp_path / "bjobs").write_text(
        f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\necho '{json.dumps(answer)}'\n"
    )
    (tmp_path / "bjobs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = allocation_of({"LSB_JOBID": "9", "LSB_JOBINDEX": "3"})
    assert found is not None
    assert found.runs
    assert (tmp_path / "asked").read_text().endswith("time_left 9[3]\n")
    (tmp_path / "bjobs").write_text("#!/bin/sh\necho 'Job <9> is not found' >&2; exit 255\n")
    assert allocation_of({"LSB_JOBID": "9"}) is None


@pytest.mark.parametrize(
    ("letter", "walltime", "status", "state"),
    [
        ("R", "00:10:00", None, "RUNNING"),
        ("E", "00:10:00", None, "CANCELLED"),
        ("E", "01:00:02", None, "TIMEOUT"),
        ("F", "00:10:00", 0, "COMPLETED"),
        ("F", "00:10:00", 271, "CANCELLED"),
        ("Q", "00:10:00", None, "REQUEUED"),
    ],
)
def test_a_job_of_pbs(letter: str, walltime: str, status: int | None, state: str) -> None:
    fields: dict[str, Any] = {
        "job_state": letter,
        "resources_used": {"walltime": walltime, "mem": "2048kb"},
        "Resource_List": {"walltime": "01:00:00", "select": "1:ngpus=8"},
    }
    found = pbs.parse_job(fields if status is None else {**fields, "Exit_status": status})
    assert found.state == state
    assert found.runs is (state == "RUNNING")
    assert found.cancelled is (state == "CANCELLED")


NOW = datetime(2026, 10, 1, 12, 0, tzinfo=UTC)


def condition(kind: str, reason: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": reason}]}}


@pytest.mark.parametrize(
    ("pod", "job", "state"),
    [
        ({"status": {"phase": "Running"}}, {}, "RUNNING"),
        ({"metadata": {"deletionTimestamp": "2026-10-01T11:59:58Z"}}, {}, "CANCELLED"),
        (condition("DisruptionTarget", "PreemptionByScheduler"), {}, "PREEMPTED"),
        (condition("DisruptionTarget", "DeletionByTaintManager"), {}, "NODE_FAIL"),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, {}, "NODE_FAIL"),
        (
            {"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}},
            {},
            "OUT_OF_MEMORY",
        ),
        (
            {"metadata": {"deletionTimestamp": "2026-10-01T11:59:58Z"}},
            {"spec": {"activeDeadlineSeconds": 3600}, "status": {"startTime": "2026-10-01T10:59:00Z"}},
            "TIMEOUT",
        ),
        (
            {"metadata": {"deletionTimestamp": "2026-10-01T11:59:58Z"}},
            {"spec": {"suspend": True}},
            "REQUEUED",
        ),
        (
            {"metadata": {"deletionTimestamp": "2026-10-01T11:59:58Z"}},
            condition("Failed", "DeadlineExceeded"),
            "TIMEOUT",
        ),
    ],
)  # fmt: skip
def test_a_pod_of_a_job(pod: dict[str, Any], job: dict[str, Any], state: str) -> None:
    found = kubernetes.parse_pod(pod, job, NOW)
    assert found.state == state
    assert found.runs is (state == "RUNNING")
    assert found.cancelled is (state == "CANCELLED")


def test_a_pod_without_an_account_knows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes, "_ACCOUNT", tmp_path)
    assert allocation_of({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("00:10:00", 600), ("1-00:00:30", 86_430), ("2:05", 7500), ("none", None), ("7", None)],
)
def test_a_duration(text: str, expected: float | None) -> None:
    assert seconds(text) == expected
