"""What log collectors put around the lines of a job is taken off, and the original line numbers stay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from epochzero.diagnose import Diagnosis

    Diagnose = Callable[..., Diagnosis]

TRACEBACK = """\
Traceback (most recent call last):
  File "/w/train.py", line 10, in <module>
    main()
  File "/w/train.py", line 7, in main
    x = table["\\u00e4"]
KeyError: 'foo'
""".splitlines()


def fluent_bit(line: str) -> str:
    text = json.dumps(line + "\n")
    return f'[0] kube.var.log: [[1700000000.123, {{}}], {{"log"=>{text}, "stream"=>"stderr"}}]'


ENVELOPES: dict[str, Callable[[str], str]] = {
    "docker json-file": lambda line: json.dumps({"log": line + "\n", "stream": "stderr"}),
    "Kubernetes CRI": lambda line: f"2026-01-02T10:00:00.123456789Z stderr F {line}",
    "kubectl logs --prefix": lambda line: f"[pod/train-worker-2-abc/pytorch] {line}",
    "stern": lambda line: f"train-worker-2 pytorch {line}",
    "Fluent Bit, text": fluent_bit,
    "Fluent Bit, JSON": lambda line: json.dumps(
        {"date": 1700000000.1, "log": line, "kubernetes": {"pod_name": "train-worker-1"}}
    ),
    "logcli": lambda line: f'2026-01-02T10:00:00Z {{app="train", pod="train-1"}} {line}',
    "logcli, JSON lines": lambda line: json.dumps({"labels": {"pod": "train-1"}, "line": line}),
    "aws logs tail": lambda line: f"2026-01-02T10:00:00.123000+00:00 algo-1-1700000 {line}",
    "Ray": lambda line: f"(TrainWorker pid=123, ip=10.0.0.1) {line}",
    "an unknown collector": lambda line: f"<< site-4 / job 17 >> {line}",
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_a_traceback_is_read_through_what_a_collector_puts_around_its_lines(
    diagnose: Diagnose, name: str
) -> None:
    wrapped = [ENVELOPES[name](line) for line in TRACEBACK]
    found = diagnose("\n".join(["starting", *wrapped]))
    assert found.category == "key_not_found"
    assert found.exception is not None
    assert (found.exception.type, found.exception.message) == ("KeyError", "'foo'")
    assert found.user_frame is not None
    assert (found.user_frame.file, found.user_frame.line) == ("/w/train.py", 7)
    assert found.root is not None
    assert found.root.line == 1 + len(TRACEBACK)
    assert found.end.evidence == "uncaught_exception"


def test_the_pods_of_one_stream_are_taken_apart(diagnose: Diagnose) -> None:
    other = [line.replace("train.py", "data.py").replace("foo", "bar") for line in TRACEBACK]
    mixed = [
        json.dumps({"log": line, "kubernetes": {"pod_name": f"train-worker-{pod}"}})
        for both in zip(TRACEBACK, other, strict=True)
        for pod, line in enumerate(both)
    ]
    found = diagnose("\n".join(mixed))
    assert found.exception is not None
    assert found.exception.message == "'foo'"
    assert {frame.file for frame in found.stack} == {"/w/train.py"}


def test_an_indented_document_of_events_is_read(diagnose: Diagnose) -> None:
    events = [{"timestamp": 1700000000000, "message": line} for line in TRACEBACK]
    found = diagnose(json.dumps({"events": events}, indent=4))
    assert (found.outcome, found.category) == ("failed", "key_not_found")


def test_a_rank_in_an_unknown_prefix_is_the_rank_of_the_failure(diagnose: Diagnose) -> None:
    found = diagnose("\n".join(f"site-4 rank 3> {line}" for line in TRACEBACK))
    assert found.root is not None
    assert found.root.rank == 3


def test_a_word_in_front_of_a_header_alone_is_no_collector(diagnose: Diagnose) -> None:
    found = diagnose("\n".join(["ERROR: " + TRACEBACK[0], *TRACEBACK[1:], "ERROR: giving up"]))
    assert found.root is not None
    assert found.root.line == len(TRACEBACK)
