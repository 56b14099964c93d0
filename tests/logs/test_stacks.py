"""Stacks that are no Python tracebacks: pytest, faulthandler, C++, JVM, Rust and Go."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.logs.stacks import parse
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from epochzero.logs.traceback import LoggedError, Traceback


def text(source: str) -> list[str]:
    return textwrap.dedent(source).strip("\n").split("\n")


def first(lines: list[str]) -> Traceback:
    """The first stack that any of the lines begins."""
    for at in range(len(lines)):
        if (found := parse(lines, at)) is not None:
            assert found.start == at
            return found
    raise AssertionError("no stack in:\n" + "\n".join(lines))


def run(folder: Path, source: str, *arguments: str) -> list[str]:
    """What ``job.py`` prints."""
    (folder / "job.py").write_text(textwrap.dedent(source), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *arguments, "job.py"], cwd=folder, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return (done.stdout + done.stderr).splitlines()


def where(raised: LoggedError) -> list[tuple[str, int | None, str]]:
    return [
        (frame.file.replace("\\", "/").rsplit("/", 1)[-1], frame.line, frame.function)
        for frame in raised.frames
    ]


def test_a_fatal_python_error_has_its_frames_outermost_first(tmp_path: Path) -> None:
    lines = run(
        tmp_path,
        """
        import os, signal
        def step():
            os.kill(os.getpid(), signal.SIGSEGV)
        def main():
            step()
        main()
        """,
        "-X",
        "faulthandler",
    )
    (raised,) = first(lines).raised
    assert (raised.type, raised.message) == ("Fatal Python error", "Segmentation fault")
    assert where(raised) == [
        ("job.py", 7, "<module>"),
        ("job.py", 6, "main"),
        ("job.py", 4, "step"),
    ]
    assert "Fatal Python error" in lines[raised.at]


def test_only_the_current_thread_counts(tmp_path: Path) -> None:
    lines = run(
        tmp_path,
        """
        import os, signal, threading, time
        threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
        def step():
            os.kill(os.getpid(), signal.SIGABRT)
        step()
        """,
        "-X",
        "faulthandler",
    )
    # From Python 3.14 on, the frames of C follow.
    threads = [line for line in lines if re.match(r"(Current t|T)hread 0x.*call first", line)]
    assert len(threads) == 2
    (raised,) = first(lines).raised
    assert where(raised)[-1] == ("job.py", 5, "step")


def test_pytest_failures(tmp_path: Path) -> None:
    lines = run(
        tmp_path,
        """
        import pathlib, sys
        import pytest
        pathlib.Path("test_smoke.py").write_text('''
        def loss():
            return {"l2": 1}["l1"]

        def test_trains():
            assert loss() < 1
        ''')
        pytest.main(["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "test_smoke.py"])
        """.replace("\n        ", "\n"),
    )
    (raised,) = first(lines).raised
    assert (raised.type, raised.message) == ("KeyError", "'l1'")
    assert where(raised)[-1][:2] == ("test_smoke.py", 3)
    assert lines[raised.at].startswith("E   ")


def test_pytest_assertions_name_their_class_below() -> None:
    lines = text(
        """
        _________________________________ test_loss __________________________________

            def test_loss():
        >       assert loss == pytest.approx(0.1)
        E       assert 0.5 == 0.1 ± 1.0e-07
        E         comparison failed

        tests/test_loss.py:12: AssertionError
        """
    )
    (raised,) = first(lines).raised
    assert raised.type == "AssertionError"
    assert raised.message.startswith("assert 0.5 == 0.1")
    assert where(raised) == [("test_loss.py", 12, "test_loss")]


TERMINATE = [
    (
        """
        terminate called after throwing an instance of 'std::bad_alloc'
          what():  std::bad_alloc
        Aborted (core dumped)
        """,
        ("std::bad_alloc", "std::bad_alloc", 1),
    ),
    (
        """
        terminate called after throwing an instance of 'c10::Error'
          what():  CUDA error: device-side assert triggered
        CUDA kernel errors might be asynchronously reported at some other API call.
        Exception raised from c10_cuda_check_implementation at CUDAException.cpp:43
        frame #0: c10::Error::Error(...) + 0x57 (0x7f in libc10.so)
        """,
        ("c10::Error", "CUDA error: device-side assert triggered", 1),
    ),
    (
        """
        terminate called after throwing an instance of 'std::runtime_error'

          what():  cannot open shard
        """,
        ("std::runtime_error", "cannot open shard", 2),
    ),
]


@pytest.mark.parametrize(("source", "expected"), TERMINATE)
def test_cpp_exceptions(source: str, expected: tuple[str, str, int]) -> None:
    (raised,) = first(text(source)).raised
    assert (raised.type, raised.message.split("\n")[0], raised.at) == expected
    assert "frame #0" not in raised.message


def test_jvm_exceptions_and_their_causes() -> None:
    lines = text(
        """
        Exception in thread "main" org.apache.spark.SparkException: Job aborted due to stage failure
        \tat org.apache.spark.scheduler.DAGScheduler.failJob(DAGScheduler.scala:2844)
        \tat com.example.Train.main(Train.scala:31)
        Caused by: java.io.FileNotFoundException: File /data/part-0 does not exist
        \tat org.apache.hadoop.fs.RawLocalFileSystem.status(RawLocalFileSystem.java:779)
        \tat com.example.Load.read(Load.scala:12)
        \t... 12 more
        Caused by: java.io.IOException: stale handle
        \tat sun.nio.ch.FileDispatcher.read0(Native Method)
        """
    )
    found = first(lines)
    assert [(r.type, r.message, r.at, r.link) for r in found.raised] == [
        ("org.apache.spark.SparkException", "Job aborted due to stage failure", 0, ""),
        ("java.io.FileNotFoundException", "File /data/part-0 does not exist", 3, "inner"),
        ("java.io.IOException", "stale handle", 7, "inner"),
    ]
    assert where(found.raised[1])[0] == ("Load.scala", 12, "com.example.Load.read")
    assert found.raised[2].frames[0].line is None
    assert found.end == len(lines)


def test_a_jvm_exception_without_frames_is_no_stack() -> None:
    assert parse(["java.io.IOException: broken"], 0) is None


@pytest.mark.parametrize(
    ("lines", "message", "at"),
    [
        (["thread 'main' panicked at src/main.rs:4:5:", "no room"], "no room", 1),
        (["thread 'main' panicked at 'no tokenizer', src/lib.rs:9:14"], "no tokenizer", 0),
        (["thread '<unnamed>' (812) panicked at src/io.rs:7:1:", "bad shard"], "bad shard", 1),
    ],
)  # fmt: skip
def test_rust_panics(lines: list[str], message: str, at: int) -> None:
    (raised,) = first(lines).raised
    assert (raised.type, raised.message, raised.at) == ("panic", message, at)
    assert raised.frames[0].file.endswith(".rs")
    assert raised.frames[0].line in {4, 7, 9}


def test_go_panics() -> None:
    lines = text(
        """
        panic: runtime error: index out of range [5] with length 3

        goroutine 1 [running]:
        main.load(...)
        \t/src/main.go:12
        """
    )
    (raised,) = first(lines).raised
    assert raised.message == "runtime error: index out of range [5] with length 3"
    assert raised.at == 0
    assert parse(["panic: at the disco", "a song"], 0) is None


FRAGMENTS = st.sampled_from(
    [
        "Fatal Python error: Aborted",
        "Current thread 0x00007f (most recent call first):",
        '  File "train.py", line 3 in step',
        "E   KeyError: 'a'",
        "test_a.py:12: KeyError",
        "terminate called after throwing an instance of 'c10::Error'",
        "terminate called recursively",
        "  what():  boom",
        "java.io.IOException: broken",
        "Caused by: java.lang.Error",
        "\tat a.B.c(B.java:3)",
        "\t... 3 more",
        "thread 'main' panicked at src/main.rs:4:5:",
        "panic: boom",
        "goroutine 1 [running]:",
        "",
        "Error",
        "Exception",
    ]
)


@given(st.lists(FRAGMENTS | st.text(max_size=30), max_size=40))
def test_any_lines_are_read_to_an_end(lines: list[str]) -> None:
    for at in range(len(lines)):
        found = parse(lines, at)
        if found is not None:
            assert found.start == at
            assert at < found.end <= len(lines)
            assert all(0 <= raised.at < len(lines) for raised in found.raised)
