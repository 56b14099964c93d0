"""What is known beside a log: our own facts, sacct, kubectl."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochzero.diagnose.facts import Facts, find_facts, read_facts, signal_name
from epochzero.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp()
HOUR = 3600.0


def told(facts: Facts) -> dict[str, Any]:
    names = ("exit_code", "signal", "state", "start", "end", "gpus")
    values = {name: getattr(facts, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def read(tmp_path: Path, text: str, name: str = "facts.json") -> dict[str, Any]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return told(read_facts(tmp_path / name))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"exit_code": 1}, {"exit_code": 1}),
        ({"exit_code": -9, "signal": 9}, {"exit_code": -9, "signal": 9}),
        ({"signal": "SIGKILL"}, {"signal": 9}),
        ({"signal": "TERM"}, {"signal": 15}),
        ({"signal": None, "exit_code": None}, {}),
        ({"start": "2024-05-01T12:00:00Z"}, {"start": NOON}),
        ({"start": "2024-05-01T12:00:00.500+00:00"}, {"start": NOON + 0.5}),
        ({"start": "2024-05-01 12:00:00"}, {"start": NOON}),
        ({"start": NOON, "end": NOON + HOUR}, {"start": NOON, "end": NOON + HOUR}),
        ({"gpus": 8, "state": "FAILED"}, {"gpus": 8, "state": "FAILED"}),
        ({"command": ["python", "train.py"]}, {}),
        ({}, {}),
    ],
)
def test_our_own_facts(tmp_path: Path, raw: dict[str, Any], expected: dict[str, Any]) -> None:
    assert read(tmp_path, json.dumps(raw)) == expected


PARSABLE = """\
JobID|JobName|State|ExitCode|Start|End|AllocTRES
4242|train|{state}|{code}|2024-05-01T12:00:00|2024-05-01T13:00:00|billing=16,cpu=16,{gpus},node=2
4242.batch|batch|{step}|{step_code}|2024-05-01T12:00:00|2024-05-01T13:00:00|cpu=16
4242.0|python|{step}|{step_code}|2024-05-01T12:00:01|2024-05-01T13:00:00|cpu=16
"""


@pytest.mark.parametrize(
    ("job", "step", "expected"),
    [
        (("FAILED", "1:0"), ("FAILED", "1:0"), {"state": "FAILED", "exit_code": 1}),
        (("COMPLETED", "0:0"), ("COMPLETED", "0:0"), {"state": "COMPLETED", "exit_code": 0}),
        (("FAILED", "0:9"), ("FAILED", "0:9"), {"state": "FAILED", "exit_code": 0, "signal": 9}),
        (("TIMEOUT", "0:0"), ("CANCELLED", "0:15"), {"state": "TIMEOUT", "signal": 15, "exit_code": 0}),
        (("CANCELLED by 1000", "0:0"), ("CANCELLED", "0:0"), {"state": "CANCELLED", "exit_code": 0}),
        # Slurm's 125 is no signal: it stands for the out-of-memory killer.
        (("OUT_OF_MEMORY", "0:125"), ("OUT_OF_MEMORY", "0:125"), {"state": "OUT_OF_MEMORY", "exit_code": 0}),
        (("FAILED", "1:0"), ("OUT_OF_MEMORY", "0:125"), {"state": "OUT_OF_MEMORY", "exit_code": 1}),
        (("NODE_FAIL", "1:0"), ("CANCELLED", "0:0"), {"state": "NODE_FAIL", "exit_code": 1}),
    ],
)  # fmt: skip
def test_sacct_with_bars(
    tmp_path: Path, job: tuple[str, str], step: tuple[str, str], expected: dict[str, Any]
) -> None:
    text = PARSABLE.format(
        state=job[0], code=job[1], step=step[0], step_code=step[1], gpus="gres/gpu:a100=8"
    )
    times = {"start": NOON, "end": NOON + HOUR, "gpus": 8}
    assert read(tmp_path, text, "sacct.txt") == times | expected


def test_sacct_as_a_table(tmp_path: Path) -> None:
    text = """\
JobID           JobName      State ExitCode               Start                 End
------------ ---------- ---------- -------- ------------------- -------------------
4242              train     FAILED      1:0 2024-05-01T12:00:00 2024-05-01T13:00:00
4242.batch        batch OUT_OF_ME+    0:125 2024-05-01T12:00:00 2024-05-01T13:00:00
"""
    assert read(tmp_path, text, "sacct.txt") == {
        "state": "OUT_OF_MEMORY",
        "exit_code": 1,
        "start": NOON,
        "end": NOON + HOUR,
    }


def test_a_job_that_still_runs_has_no_end(tmp_path: Path) -> None:
    text = "JobID|State|ExitCode|Start|End\n4242|RUNNING|0:0|2024-05-01T12:00:00|Unknown\n"
    assert read(tmp_path, text, "sacct.txt") == {"state": "RUNNING", "exit_code": 0, "start": NOON}


def pod(terminated: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "4", "cpu": "8"}}}]},
        "status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": terminated}}]}
        | status,
    }


KILLED = {
    "exitCode": 137,
    "reason": "OOMKilled",
    "startedAt": "2024-05-01T12:00:00Z",
    "finishedAt": "2024-05-01T13:00:00Z",
}


@pytest.mark.parametrize("wrap", [lambda p: p, lambda p: {"kind": "List", "items": [p]}])
def test_kubectl_json(tmp_path: Path, wrap: Any) -> None:
    assert read(tmp_path, json.dumps(wrap(pod(KILLED))), "pod.json") == {
        "exit_code": 137,
        "state": "OOMKilled",
        "start": NOON,
        "end": NOON + HOUR,
        "gpus": 4,
    }


def test_the_reason_of_the_pod_counts_more_than_that_of_its_container(tmp_path: Path) -> None:
    evicted = pod({"exitCode": 143, "reason": "Error"}, reason="Evicted")
    assert read(tmp_path, json.dumps(evicted))["state"] == "Evicted"


def test_a_container_that_was_restarted_tells_of_its_last_end(tmp_path: Path) -> None:
    waiting = pod({})
    waiting["status"]["containerStatuses"] = [
        {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": KILLED}}
    ]
    found = read(tmp_path, json.dumps(waiting))
    assert (found["exit_code"], found["state"]) == (137, "OOMKilled")


def test_kubectl_describe(tmp_path: Path) -> None:
    text = """\
Name:         trainer-0
Status:       Failed
Containers:
  main:
    State:          Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Wed, 01 May 2024 12:00:00 +0000
      Finished:     Wed, 01 May 2024 13:00:00 +0000
    Limits:
      nvidia.com/gpu:  4
"""
    assert read(tmp_path, text, "describe.txt") == {
        "exit_code": 137,
        "state": "OOMKilled",
        "start": NOON,
        "end": NOON + HOUR,
        "gpus": 4,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "{",
        "[]",
        "[1]",
        "3",
        '{"exit_code": "one"}',
        '{"exit_code": 1.5}',
        '{"exit_code": [1]}',
        '{"signal": "SIGFOO"}',
        '{"start": "yesterday"}',
        '{"start": {}}',
        '{"gpus": "many"}',
        '{"state": 3}',
        '{"status": 3}',
        '{"status": {"containerStatuses": [3]}}',
        '{"items": [3]}',
        "[" * 100_000,
        "JobID State ExitCode\n",
        "JobID|State|ExitCode\n",
        "JobID|State|ExitCode\n1|FAILED|one:two\n",
        "Containers:\n  Exit Code:  one\n",
        "Containers:\n  Started:  yesterday\n  Exit Code: 1\n",
        "\0\0\0",
    ],
    ids=lambda text: text[:30] or "empty",
)
def test_anything_else_is_an_input_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"facts\.json"):
        read(tmp_path, text)


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_facts(tmp_path / "facts.json")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text()
    | st.recursive(st.none() | st.integers() | st.text(), lambda part: st.lists(part)).map(
        json.dumps
    )
    | st.dictionaries(
        st.sampled_from(["exit_code", "signal", "state", "start", "gpus", "status", "items"]),
        st.none() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
    ).map(json.dumps)
    | st.text(alphabet="JobIDExitCode:|-\n 0123").map(lambda text: "JobID" + text)
)
def test_any_text_is_facts_or_an_input_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "facts.json").write_text(text, encoding="utf-8", errors="replace")
    with contextlib.suppress(InputError):
        assert isinstance(read_facts(tmp_path / "facts.json"), Facts)


# -- Facts together ----------------------------------------------------------------------------


def test_facts_are_found_beside_the_logs(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("x")
    (tmp_path / "facts.json").write_text('{"exit_code": 1}')
    (tmp_path / "sacct.txt").write_text("JobID|State|ExitCode\n1|TIMEOUT|0:0\n")
    for given_path in (tmp_path, tmp_path / "train.log"):
        assert told(find_facts([given_path])) == {"exit_code": 1, "state": "TIMEOUT"}
    assert find_facts([]) == Facts()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"exit_code": "one"}', ': exit_code is "one", expected an integer'),
        ('{"signal": "SIGFOO"}', ': signal is "SIGFOO", expected the number or name of a signal'),
        ('{"start": "noon"}', ': start is "noon", expected a time'),
        ('{"exit_code": 1,', ": invalid JSON at line 1, column 17"),
        ("[1]", ": expected a JSON object with some of exit_code, signal"),
        ("[" * 100_000, " is not the output of sacct or kubectl"),
        ("", " is neither facts.json nor output of sacct or kubectl"),
    ],
)
def test_a_file_that_cannot_be_used_is_noted(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "facts.json").write_text(text)
    (tmp_path / "sacct.txt").write_text("JobID|State|ExitCode\n1|TIMEOUT|0:0\n")
    found = find_facts([tmp_path])
    assert (found.exit_code, found.state) == (0, "TIMEOUT")
    (note,) = found.notes
    assert note.startswith(f"{tmp_path / 'facts.json'}{told}")
    assert note.endswith("; it was ignored")


def test_given_facts_go_before_found_ones() -> None:
    assert Facts(exit_code=1, gpus=8) | Facts(exit_code=2, state="FAILED") == Facts(
        exit_code=1, gpus=8, state="FAILED"
    )


@pytest.mark.parametrize(
    ("facts", "status", "well"),
    [
        (Facts(exit_code=0), 0, True),
        (Facts(exit_code=0, state="COMPLETED"), 0, True),
        (Facts(exit_code=0, state="Succeeded"), 0, True),
        (Facts(exit_code=0, state="TIMEOUT"), 0, False),
        (Facts(exit_code=0, signal=9), 137, False),
        (Facts(exit_code=-9), 137, False),
        (Facts(exit_code=137), 137, False),
        (Facts(signal=11), 139, False),
        (Facts(), None, False),
    ],
)
def test_how_a_job_ended(facts: Facts, status: int | None, well: bool) -> None:
    assert facts.exit_status == status
    assert facts.ended_well is well


def test_signals_have_names() -> None:
    assert (signal_name(9), signal_name(77)) == ("SIGKILL", "signal 77")
