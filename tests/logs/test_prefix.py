"""Prefixes of launchers and loggers: what they tell, and what is left of the line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.logs.prefix import Prefix, split, strip_ansi, uses_bare_ranks

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp()
CLOCK_NOON = 12 * 3600.0
CODE = '  File "train.py", line 3, in <module>'

LAUNCHERS = [
    ("[default3]:", {"rank": 3}),
    ("[trainer11]:", {"rank": 11}),
    ("[rank3]: ", {"rank": 3}),
    ("[Rank 3] ", {"rank": 3}),
    ("[1,3]<stderr>:", {"rank": 3}),
    ("[1,12]<stdout>:", {"rank": 12}),
    ("[3]<stderr>:", {"rank": 3}),
    ("(train_fn pid=12, ip=10.0.0.2) ", {"process": "train_fn pid=12, ip=10.0.0.2"}),
    ("(RayTrainWorker pid=12) ", {"process": "RayTrainWorker pid=12"}),
    ("(Trainer.fit() pid=12) ", {"process": "Trainer.fit() pid=12"}),
    ("(pid=12) ", {"process": "pid=12"}),
    ("(pid=raylet) ", {"process": "pid=raylet"}),
    ("(pid=None) ", {"process": "pid=None"}),
    ("(raylet) ", {"process": "raylet"}),
    ("(raylet, ip=10.0.0.2) ", {"process": "raylet, ip=10.0.0.2"}),
    ("\x1b[36m(train_fn pid=12, ip=10.0.0.2)\x1b[0m ", {"process": "train_fn pid=12, ip=10.0.0.2"}),
    ("[pod/trainer-0/main] ", {"process": "trainer-0/main"}),
    ("2024-05-01T12:00:00.500000000Z stderr F ", {"time": NOON + 0.5}),
    ("2024-05-01T14:00:00+02:00 stdout P ", {"time": NOON}),
    ("trainer-1  | ", {"rank": 1, "process": "trainer-1"}),
    ("train_worker_1  | ", {"rank": 1, "process": "train_worker_1"}),
    ("worker-3: ", {"host": "worker-3"}),
    ("node07: ", {"host": "node07"}),
    ("10.0.0.4: ", {"host": "10.0.0.4"}),
    ("2024-05-01T12:00:00.1234567Z ", {"time": NOON + 0.1234567}),
    ("[pod/trainer-0/main] 2024-05-01T12:00:00Z ", {"process": "trainer-0/main", "time": NOON}),
]

LOGGERS = [
    ("2024-05-01 12:00:00,123 - trainer - ERROR - ", {"time": NOON + 0.123, "level": "ERROR"}),
    ("2024-05-01 12:00:00,123 ERROR ", {"time": NOON + 0.123, "level": "ERROR"}),
    ("2024-05-01 12:00:00,123 [WARNING] ", {"time": NOON + 0.123, "level": "WARNING"}),
    ("2024-05-01 12:00:00 | CRITICAL | ", {"time": NOON, "level": "FATAL"}),
    ("[2024-05-01 12:00:00,123][train][ERROR] - ", {"time": NOON + 0.123, "level": "ERROR"}),
    ("[2024-05-01 12:00:00,123 INFO train.py:12] ", {"time": NOON + 0.123, "level": "INFO"}),
    ("[2024-05-01 12:00:00,5: ERROR/PoolWorker-1] ", {"time": NOON + 0.5, "level": "ERROR"}),
    ("(2024-05-01 12:00:00) ", {"time": NOON}),
    ("2024/05/01 12:00:00 ", {"time": NOON}),
    ("05/01/2024 12:00:00 PM - ", {"time": NOON}),
    ("05/01/2024 12:00:00 AM - ", {"time": NOON - 12 * 3600}),
    ("05/01/2024 01:00:00 PM - ", {"time": NOON + 3600}),
    ("2024-05-01T12:00:00Z ", {"time": NOON}),
    ("2024-05-01 14:00:00+0200 ", {"time": NOON}),
    ("2024-05-01 06:30:00-05:30 ", {"time": NOON}),
    ("12:00:00 | INFO | ", {"time": CLOCK_NOON, "level": "INFO"}),
    ("[12:00:00] ", {"time": CLOCK_NOON}),
    ("12:00:00.250 ", {"time": CLOCK_NOON + 0.25}),
    ("[W 2024-05-01 12:00:00,000] ", {"time": NOON, "level": "WARNING"}),
    ("[E 12:00:00.250 ServerApp] ", {"time": CLOCK_NOON + 0.25, "level": "ERROR"}),
    ("[2024-05-01 12:00:00,000] {docker_operator.py:219} INFO - ", {"time": NOON}),
    (
        "[2024-05-01 12:00:00,000] {taskinstance.py:1150} ERROR - ",
        {"time": NOON, "level": "ERROR"},
    ),
    ("INTERNALERROR> ", {"level": "ERROR"}),
    ("ERROR - ", {"level": "ERROR"}),
    ("[ERROR] ", {"level": "ERROR"}),
    ("[warning] ", {"level": "WARNING"}),
]

# Native loggers leave the place in the source in front of the message.
NATIVE = [
    (
        "E0501 12:00:00.500000 16912 cuda.cc:263] ",
        {"time": CLOCK_NOON + 0.5, "level": "ERROR", "process": "16912"},
    ),
    (
        "F20240501 12:00:00.500000 16912 io.cc:2] ",
        {"time": CLOCK_NOON + 0.5, "level": "FATAL", "process": "16912"},
    ),
    (
        "W0501 12:00:00.500000 9 torch/distributed/run.py:792] ",
        {"time": CLOCK_NOON + 0.5, "level": "WARNING", "process": "9"},
    ),
    (
        "2024-05-01 12:00:00.500000: E tensorflow/core/gpu.cc:12] ",
        {"time": NOON + 0.5, "level": "ERROR"},
    ),
    (
        "2024-05-01 12:00:00.500000: I external/xla/gpu.cc:12] ",
        {"time": NOON + 0.5, "level": "INFO"},
    ),
    (
        "[E501 12:00:00.500000000 ProcessGroupNCCL.cpp:629] ",
        {"time": CLOCK_NOON + 0.5, "level": "ERROR"},
    ),
    ("[W ProcessGroupNCCL.cpp:629] ", {"level": "WARNING"}),
    (
        "[rank1]:[E501 12:00:00.500000000 ProcessGroupNCCL.cpp:629] ",
        {"rank": 1, "time": CLOCK_NOON + 0.5, "level": "ERROR"},
    ),
    ("ERROR 05-01 12:00:00 engine.py:12] ", {"time": CLOCK_NOON, "level": "ERROR"}),
]

NO_PREFIXES = [
    CODE,
    "Traceback (most recent call last):",
    "RuntimeError: CUDA out of memory",
    "Error: something went wrong",
    "Epoch 1: loss 3.2",
    "[1/3] building",
    "[2] first choice",
    "(3, 4) is the shape",
    "tensor([0, 1, 2])",
    "{'rank': 3, 'lr': 0.1}",
    "E   assert 1 == 2",
    "GPU 3: 80 GB",
    "2024",
    "10:20",
    "worker failed",
    "hosts: a, b",
    "gpus: 4",
    "  [rank3]: quoted",
    "",
    " ",
]


def tell(prefix: Prefix) -> dict[str, Any]:
    return {key: value for key, value in prefix._asdict().items() if value is not None}


@pytest.mark.parametrize(
    "text", ["Traceback (most recent call last):", CODE, "    loss.backward()", "x"]
)
@pytest.mark.parametrize(("prefix", "told"), LAUNCHERS)
def test_launcher_prefixes_are_taken_off_and_indentation_stays(
    prefix: str, told: dict[str, Any], text: str
) -> None:
    found, rest = split(strip_ansi(prefix + text))
    assert rest == text
    assert tell(found) == pytest.approx(told)


@pytest.mark.parametrize(("prefix", "told"), LOGGERS)
def test_logger_prefixes(prefix: str, told: dict[str, Any]) -> None:
    found, rest = split(prefix + "loss is nan")
    assert rest == "loss is nan"
    assert tell(found) == pytest.approx(told)


@pytest.mark.parametrize(("prefix", "told"), NATIVE)
def test_native_prefixes_keep_the_place_in_the_source(prefix: str, told: dict[str, Any]) -> None:
    place = prefix.split()[-1]
    found, rest = split(prefix + "boom")
    assert rest == f"{place} boom"
    assert tell(found) == pytest.approx(told)


@pytest.mark.parametrize("name", ["root", "__main__", "torch.nn"])
def test_the_default_format_of_logging_keeps_its_logger(name: str) -> None:
    found, rest = split(f"ERROR:{name}:boom")
    assert found.level == "ERROR"
    assert rest == f"{name}:boom"


@pytest.mark.parametrize("line", NO_PREFIXES)
def test_other_lines_are_left_alone(line: str) -> None:
    assert split(line) == (Prefix(), line)


def test_prefixes_of_several_loggers_add_up() -> None:
    found, rest = split("[default2]:node07: 2024-05-01 12:00:00,500 - root - ERROR - boom")
    assert rest == "boom"
    assert tell(found) == pytest.approx(
        {"rank": 2, "host": "node07", "time": NOON + 0.5, "level": "ERROR"}
    )


def test_an_impossible_time_is_no_time() -> None:
    found, rest = split("2024-13-45 25:61:61 boom")
    assert rest == "boom"
    assert found.time is None


def test_a_system_log_tells_host_and_clock() -> None:
    found, rest = split("May  1 12:00:00 node07 kernel: NVRM: Xid (PCI:0000:1:00): 79")
    assert (found.host, found.time) == ("node07", CLOCK_NOON)
    assert rest == "kernel: NVRM: Xid (PCI:0000:1:00): 79"


@pytest.mark.parametrize(
    ("line", "rank", "rest"),
    [
        ("3: Traceback (most recent call last):", 3, "Traceback (most recent call last):"),
        (f"3: {CODE}", 3, CODE),
        (f" 3: {CODE}", 3, CODE),
        ("127:", 127, ""),
        ("no rank", None, "no rank"),
        ("0: slurmstepd: error: x", None, "slurmstepd: error: x"),
    ],
)
def test_srun_labels_count_only_where_the_log_has_them(
    line: str, rank: int | None, rest: str
) -> None:
    found, left = split(line, bare_ranks=True)
    assert (found.rank, left) == (rank, rest)
    assert split(line) == (Prefix(), line)


@pytest.mark.parametrize(
    ("lines", "labelled"),
    [
        (["0: a", "1: b", "0:   File", "1: d"], True),
        (["0: a", "1: b", "", "0: c", "0: d", "slurmstepd: error"], True),
        (["0: a", "slurmstepd: x", "1: b", "plain"], False),
        (["0: a"], False),
        ([], False),
        (["Epoch 0: 1", "Epoch 1: 2", "Epoch 2: 3"], False),
    ],
)
def test_whether_a_log_was_written_with_labels(lines: list[str], labelled: bool) -> None:
    assert uses_bare_ranks("\n".join(lines).encode()) is labelled


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[1;31mError\x1b[0m", "Error"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[2K\rline", "\rline"),
        ("50%\x1b[A", "50%"),
        ("plain [0m", "plain [0m"),
    ],
)
def test_terminal_escapes_are_taken_out(text: str, plain: str) -> None:
    assert strip_ansi(text) == plain


PIECES = st.sampled_from([p for p, _ in LAUNCHERS + LOGGERS + NATIVE] + NO_PREFIXES)


@given(st.lists(PIECES | st.text(max_size=20), max_size=6), st.booleans())
def test_what_is_left_is_always_the_end_of_the_line(pieces: list[str], bare_ranks: bool) -> None:
    line = "".join(pieces)
    prefix, rest = split(line, bare_ranks=bare_ranks)
    assert line.endswith(rest)
    assert prefix.level in {None, "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"}


@given(st.text())
def test_any_text_without_escapes_is_kept(text: str) -> None:
    assert strip_ansi(text.replace("\x1b", "")) == text.replace("\x1b", "")
