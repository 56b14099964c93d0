"""Whole logs put together from what logs are made of: never a crash, never a wrong place."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

from epochzero import taxonomy
from epochzero.cli.formats import formats
from epochzero.diagnose import Diagnoser, Diagnosis, Facts
from epochzero.errors import InputError
from epochzero.logs import source
from epochzero.logs.source import Log
from tests.waiting import bounded_work

diagnoser = functools.cache(lambda: Diagnoser(redact=False))
NOTHING = Facts()
LONGEST = 2.0
"""Seconds for one of these small logs; they take milliseconds, whatever the machine."""

FRAGMENTS = [
    b"Traceback (most recent call last):\n",
    b'  File "/job/train.py", line 12, in step\n',
    b'  File "/opt/conda/lib/python3.11/site-packages/torch/_utils.py", line 7, in reraise\n',
    b"    raise exception\n",
    b"    ~~~~~~^^^^\n",
    b"KeyError: 'lr'\n",
    b"ValueError: Caught ValueError in DataLoader worker process 1.\nOriginal ",
    b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15 GiB total)\n",
    b"torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n",
    b"\nDuring handling of the above exception, another exception occurred:\n\n",
    b"\nThe above exception was the direct cause of the following exception:\n\n",
    b"  + Exception Group Traceback (most recent call last):\n",
    b"  | ExceptionGroup: two (2 sub-exceptions)\n",
    b"  +-+---------------- 1 ----------------\n",
    b"    +------------------------------------\n",
    b"ValueError                                Traceback (most recent call last)\n",
    b"Cell In[3], line 1\n----> 1 fit()\n",
    b"E   assert 1 == 2\n",
    b"tests/test_a.py:12: AssertionError\n",
    b"Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n",
    b"terminate called after throwing an instance of 'c10::Error'\n  what():  boom\n",
    b'Exception in thread "main" java.io.IOException: x\n\tat a.B.c(B.java:3)\n',
    b"Caused by: java.lang.Error: y\n",
    b"thread 'main' panicked at src/main.rs:1:2:\n",
    b"panic: x\n\ngoroutine 1 [running]:\n",
    b"Segmentation fault (core dumped)\n",
    b"slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2024-05-01T12:00:00 DUE TO TIME LIMIT ***\n",
    b"Killed\n",
    b"[rank3]: ",
    b"[default0]:",
    b"(train_fn pid=12, ip=10.0.0.2) ",
    b"2024-05-01 12:00:00,123 - root - ERROR - ",
    b"2024-05-01T12:00:00.1Z stderr F ",
    b"[rank1]:[E501 12:00:00.5 ProcessGroupNCCL.cpp:629] ",
    b"E0501 12:00:00.5 12 a.cc:3] ",
    b"3: ",
    b" 12%|#2        | 12/100 [00:01<00:09]\r",
    b"\x1b[31m",
    b"\x1b[0m",
    b"\x1b]0;",
    b"\0\0\0\0",
    b"\xff\xfe\x80",
    "größer — 误".encode(),
    b"\xe2\x80\xa8",
    b"\x85\x0b\x0c\x1c",
    b"\r\n",
    b"\n",
    b"\n\n\n",
    b"Epoch 3: loss 0.5\n",
    b"Training complete\n",
    b"all is quiet\n" * 20,
    b"x" * 5000,
    b"WARNING: could not import apex, falling back\n",
    b"{'on_error': 'raise', 'log': 'ERROR'}\n",
    b"usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --x\n",
]
LOGS = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=30), max_size=40).map(b"".join)
FACTS = st.builds(
    Facts,
    exit_code=st.none() | st.integers(-70, 260),
    signal=st.none() | st.integers(1, 64),
    state=st.none()
    | st.sampled_from(["FAILED", "OUT_OF_MEMORY", "COMPLETED"])
    | st.text(max_size=9),
    start=st.none() | st.floats(0, 2e9),
    end=st.none() | st.floats(0, 2e9),
    gpus=st.none() | st.integers(0, 99),
)


def diagnosis(texts: dict[str, bytes], facts: Facts = NOTHING) -> Diagnosis:
    """The diagnosis of logs in memory; most that is made up here looks like text."""
    logs = [Log(name, text=text, rank=n) for n, (name, text) in enumerate(texts.items())]
    try:
        with bounded_work():
            found = diagnoser().diagnose(logs, facts)
    except InputError as error:
        if "binary" not in str(error):
            raise
        reject()
    check(found, texts)
    return found


def check(found: Diagnosis, texts: dict[str, bytes]) -> None:
    """What holds for every diagnosis, whatever the log."""
    assert found.category in taxonomy.categories()
    assert set(found.also) <= taxonomy.categories().keys()
    assert found.root_cause in taxonomy.root_causes()
    assert found.phase in taxonomy.phases()
    assert found.retry in taxonomy.retries()
    assert found.dimension == taxonomy.categories()[found.category].dimension
    assert 0 <= found.confidence <= 1
    assert (found.outcome in ("no_failure", "unknown")) == (found.category == "not_a_failure")
    json.dumps(found.to_dict(), allow_nan=False).encode()
    if found.root is not None and found.root.line is not None:
        check_place(texts[found.root.file], found.root.line, found.root.text)
    for one in found.cascade:
        if len(one.text) < 300:
            check_place(texts[one.file], one.line, one.text)


def check_place(text: bytes, line: int, shown: str) -> None:
    """The line named holds the text shown, which lacks its terminal escapes."""
    lines = text.split(b"\n")
    assert 1 <= line <= len(lines)
    raw = lines[line - 1].decode("utf-8", "replace")
    for part in shown.split(" [...] "):  # of a very long line both ends are shown
        assert letters(part) in letters(ESCAPES.sub("", raw))


ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")


def letters(text: str) -> str:
    """What remains of a line without control characters and spaces."""
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f]", "", text)


@given(LOGS, FACTS)
@example(b"", Facts())
@example(b"\n", Facts(exit_code=1))
def test_a_log(text: bytes, facts: Facts) -> None:
    diagnosis({"train.log": text}, facts)


@given(st.lists(LOGS, max_size=4), FACTS)
def test_logs_of_several_ranks(texts: list[bytes], facts: Facts) -> None:
    diagnosis({f"rank_{number}.log": text for number, text in enumerate(texts)}, facts)


@given(LOGS, st.sampled_from([3, 50, 700]))
def test_where_blocks_end_changes_no_root(text: bytes, block_bytes: int) -> None:
    whole = diagnosis({"train.log": text})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK_BYTES", block_bytes)
        pieces = diagnosis({"train.log": text})
    if whole.outcome == pieces.outcome == "failed":
        assert pieces.root == whole.root


@given(LOGS, st.sampled_from(["text", "json", "jsonl", "markdown", "github"]))
def test_every_diagnosis_can_be_shown(text: bytes, form: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        formats()[form].diagnoses([diagnosis({"train.log": text})], top=3, many=False)
    assert shown.getvalue().endswith("\n")


@pytest.mark.parametrize(
    "text",
    [
        FRAGMENTS[0] * 20_000,
        FRAGMENTS[1] * 20_000,
        FRAGMENTS[0] + FRAGMENTS[1] * 20_000,
        b"RuntimeError: Traceback (most recent call last):\n" * 5_000,
        FRAGMENTS[12] * 5_000,
        (FRAGMENTS[11] + FRAGMENTS[12] + FRAGMENTS[13]) * 3_000,
        b"".join(b"KeyError: 'k%d'\n" % n for n in range(20_000)),
        b"\x1b]" * 100_000 + b"Error: x\n",
        b"(" * 100_000 + b"Error: x\n",
        b"[" * 100_000 + b"Error: x\n",
        b" " * 100_000 + b"Error: x\n",
        b"Error: " + b"a.b_" * 100_000,
        b"Error" * 100_000 + b"\n",
        b"'" * 100_000 + b"Error: x\n",
        b"/" * 50_000 + b"Error: no such file " + b"/a" * 50_000 + b"\n",
        b"E   " * 50_000 + b"\n",
        b"\r" * 100_000 + b"Error: x\n",
        b"Error: 1\r" * 50_000 + b"\n",
        b"Caused by: a.B.Error: x\n\tat a.b(c:1)\n" * 5_000,
        b"size mismatch for a: " * 20_000 + b"\n",
    ],
    ids=lambda text: repr(text[:24])[2:-1],
)
def test_hostile_logs_take_no_long_time(text: bytes) -> None:
    with bounded_work():
        found = diagnoser().diagnose([Log("train.log", text=text)])
    check(found, {"train.log": text})
