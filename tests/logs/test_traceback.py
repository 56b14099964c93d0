"""Python tracebacks of every shape, most of them printed by a real interpreter."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.logs.traceback import LoggedError, Traceback, is_header, parse
from tests.waiting import PATIENCE_S

HEADER = "Traceback (most recent call last):"


@cache
def printed(source: str) -> tuple[str, ...]:
    """What a program prints to standard error, line by line; its file is ``job.py``."""
    with TemporaryDirectory() as folder:
        Path(folder, "job.py").write_text(textwrap.dedent(source), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "job.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    return tuple(done.stderr.splitlines())


def read(lines: list[str] | tuple[str, ...], breaks: list[bool] | None = None) -> Traceback:
    """The first traceback among ``lines``."""
    start = next(number for number, line in enumerate(lines) if is_header(line))
    found = parse(lines, start, breaks)
    assert found is not None, "\n".join(lines)
    assert found.start == start
    return found


def text(source: str) -> list[str]:
    return textwrap.dedent(source).strip("\n").split("\n")


def where(raised: LoggedError) -> list[tuple[str, int | None, str]]:
    """The frames without the folders of their files."""
    return [
        (frame.file.replace("\\", "/").rsplit("/", 1)[-1], frame.line, frame.function)
        for frame in raised.frames
    ]


def summary(found: Traceback) -> list[tuple[str, str, str]]:
    """Type, first line of the message and link of each exception."""
    return [(r.type, r.message.split("\n")[0], r.link) for r in found.raised]


# -- Printed by this interpreter ---------------------------------------------------------------


def test_plain() -> None:
    lines = printed(
        """
        def step(batch):
            return batch / 0

        step(1)
        """
    )
    found = read(lines)
    assert summary(found) == [("ZeroDivisionError", "division by zero", "")]
    assert where(found.raised[0]) == [("job.py", 5, "<module>"), ("job.py", 3, "step")]
    assert found.raised[0].at == len(lines) - 1
    assert found.end == len(lines)


@dataclass(frozen=True)
class Case:
    """A program, and type, message and link of what its traceback shows."""

    source: str
    raised: tuple[tuple[str, str, str], ...]


REAL = {
    "cause": Case(
        """
        try:
            {}["lr"]
        except KeyError as error:
            raise RuntimeError("no learning rate") from error
        """,
        (("KeyError", "'lr'", ""), ("RuntimeError", "no learning rate", "cause")),
    ),
    "context": Case(
        """
        try:
            {}["lr"]
        except KeyError:
            int("a")
        """,
        (
            ("KeyError", "'lr'", ""),
            ("ValueError", "invalid literal for int() with base 10: 'a'", "context"),
        ),
    ),
    "three in a chain": Case(
        """
        try:
            try:
                open("/no/file")
            except OSError as error:
                raise ValueError("bad config") from error
        except ValueError:
            raise RuntimeError("cannot start")
        """,
        (
            ("FileNotFoundError", "[Errno 2] No such file or directory: '/no/file'", ""),
            ("ValueError", "bad config", "cause"),
            ("RuntimeError", "cannot start", "context"),
        ),
    ),
    "from None": Case(
        """
        try:
            {}["lr"]
        except KeyError:
            raise RuntimeError("no learning rate") from None
        """,
        (("RuntimeError", "no learning rate", ""),),
    ),
    "no message": Case("assert 1 == 2", (("AssertionError", "", ""),)),
    "own class": Case(
        """
        class TooLarge(Exception): pass
        TooLarge.__module__ = "models.checks"
        raise TooLarge("batch: 3")
        """,
        (("models.checks.TooLarge", "batch: 3", ""),),
    ),
    "no error in its name": Case("raise StopIteration(3)", (("StopIteration", "3", ""),)),
    "interrupt": Case("raise KeyboardInterrupt", (("KeyboardInterrupt", "", ""),)),
    "recursion": Case(
        """
        def f(n):
            return f(n + 1)
        f(0)
        """,
        (("RecursionError", "maximum recursion depth exceeded", ""),),
    ),
    "code from a text": Case("exec('1/0')", (("ZeroDivisionError", "division by zero", ""),)),
    "message with a colon first": Case("raise ValueError(': x')", (("ValueError", ": x", ""),)),
    "message of several lines": Case(
        """
        keys = "\\n\\tMissing key(s): a\\n\\tUnexpected: b"
        raise RuntimeError("Error(s) in loading state_dict for Net:" + keys)
        """,
        (("RuntimeError", "Error(s) in loading state_dict for Net:", ""),),
    ),
    "thread": Case(
        """
        import threading
        threading.Thread(target=int, args=("a",)).start()
        """,
        (("ValueError", "invalid literal for int() with base 10: 'a'", ""),),
    ),
    "process pool": Case(
        """
        import multiprocessing
        def load(n):
            return [1][n]
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(1) as pool:
                pool.map(load, [5])
        """,
        (
            ("IndexError", "list index out of range", ""),
            ("IndexError", "list index out of range", "cause"),
        ),
    ),
    "executor": Case(
        """
        import concurrent.futures, multiprocessing
        def load(n):
            return [1][n]
        if __name__ == "__main__":
            with concurrent.futures.ProcessPoolExecutor(
                1, mp_context=multiprocessing.get_context("fork")
            ) as pool:
                pool.submit(load, 5).result()
        """,
        (
            ("IndexError", "list index out of range", ""),
            ("IndexError", "list index out of range", "cause"),
        ),
    ),
    "group": Case(
        """
        raise ExceptionGroup("two shards", [ValueError("bad magic"), KeyError("label")])
        """,
        (
            ("ExceptionGroup", "two shards (2 sub-exceptions)", ""),
            ("ValueError", "bad magic", "group"),
            ("KeyError", "'label'", "group"),
        ),
    ),
    "group in a group": Case(
        """
        def fail(error):
            try:
                raise error
            except Exception as raised:
                return raised
        inner = ExceptionGroup("inner", [fail(OSError("disk")), fail(TypeError("x"))])
        raise ExceptionGroup("outer", [fail(inner), fail(KeyError("label"))])
        """,
        (
            ("ExceptionGroup", "outer (2 sub-exceptions)", ""),
            ("ExceptionGroup", "inner (2 sub-exceptions)", "group"),
            ("OSError", "disk", "group"),
            ("TypeError", "x", "group"),
            ("KeyError", "'label'", "group"),
        ),
    ),
    "chain in a group": Case(
        """
        def fail():
            try:
                try:
                    {}["label"]
                except KeyError as error:
                    raise ValueError("shard 3") from error
            except Exception as raised:
                return raised
        raise ExceptionGroup("shards", [fail()])
        """,
        (
            ("ExceptionGroup", "shards (1 sub-exception)", ""),
            ("KeyError", "'label'", "group"),
            ("ValueError", "shard 3", "cause"),
        ),
    ),
    "task group": Case(
        """
        import asyncio
        async def load():
            raise ValueError("bad shard")
        async def main():
            async with asyncio.TaskGroup() as group:
                group.create_task(load())
        asyncio.run(main())
        """,
        (
            ("ExceptionGroup", "unhandled errors in a TaskGroup (1 sub-exception)", ""),
            ("ValueError", "bad shard", "group"),
        ),
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_types_messages_and_links(name: str) -> None:
    lines = printed(REAL[name].source)
    found = read(lines)
    assert summary(found) == list(REAL[name].raised)
    for raised in found.raised:
        assert raised.type in lines[raised.at], "the line told does not name the exception"
        assert raised.message.split("\n")[0] in lines[raised.at]


def test_what_the_supervisor_prints_next_is_no_part_of_the_message() -> None:
    (raised,) = read(["Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "KeyError: 2",
                         "epochzero: a.py failed with exit code 1 after 1 s"]).raised  # fmt: skip
    assert raised.message == "2"


def test_every_exception_of_a_chain_has_its_own_frames() -> None:
    found = read(printed(REAL["cause"].source))
    assert [where(raised) for raised in found.raised] == [
        [("job.py", 3, "<module>")],
        [("job.py", 5, "<module>")],
    ]


def test_remote_frames_are_those_of_the_worker() -> None:
    found = read(printed(REAL["process pool"].source))
    worker, parent = found.raised
    assert where(worker)[-1] == ("job.py", 4, "load")
    assert ("job.py", 7, "<module>") in where(parent)


def test_group_members_have_their_own_frames() -> None:
    found = read(printed(REAL["chain in a group"].source))
    assert where(found.raised[1]) == [("job.py", 5, "fail")]
    assert where(found.raised[2]) == [("job.py", 7, "fail")]


def test_recursion_keeps_its_frames() -> None:
    lines = printed(REAL["recursion"].source)
    assert any("Previous line repeated" in line for line in lines)
    assert where(read(lines).raised[0])[:2] == [("job.py", 4, "<module>"), ("job.py", 3, "f")]


def test_a_syntax_error_is_in_the_line_that_it_names() -> None:
    lines = printed(
        """
        import pathlib
        pathlib.Path("bad.py").write_text("x = (1\\ny = 2\\n")
        import bad
        """
    )
    found = read(lines)
    assert found.raised[0].type == "SyntaxError"
    assert where(found.raised[0])[-1] == ("bad.py", 1, "")
    assert where(found.raised[0])[0] == ("job.py", 4, "<module>")


def test_lines_of_a_message_belong_to_it() -> None:
    found = read(printed(REAL["message of several lines"].source))
    assert "Missing key(s): a" in found.raised[0].message
    assert "Unexpected: b" in found.raised[0].message


def test_notes_belong_to_the_message() -> None:
    lines = printed(
        """
        error = ValueError("bad shard")
        error.add_note("while reading shard-3.tar")
        raise error
        """
    )
    (raised,) = read(lines).raised
    assert raised.message == "bad shard\nwhile reading shard-3.tar"
    assert lines[raised.at] == "ValueError: bad shard"


def test_a_blank_line_ends_a_message() -> None:
    lines = [*printed("int('a')"), "", "Epoch 3: 100%"]
    found = read(lines)
    assert found.raised[0].message.endswith("'a'")
    assert found.end <= len(lines) - 1


@pytest.mark.parametrize("module", ["unittest", "asyncio logger"])
def test_tracebacks_inside_other_output(module: str) -> None:
    sources = {
        "unittest": """
            import unittest
            class Smoke(unittest.TestCase):
                def test_loss(self):
                    self.assertEqual(1, 2, "loss did not fall")
            unittest.main()
            """,
        "asyncio logger": """
            import asyncio, gc
            async def load():
                raise ValueError("bad shard")
            async def main():
                task = asyncio.ensure_future(load())
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                del task
                gc.collect()
            asyncio.run(main())
            """,
    }
    raised = {
        "unittest": ("AssertionError", "1 != 2 : loss did not fall", ""),
        "asyncio logger": ("ValueError", "bad shard", ""),
    }
    found = read(printed(sources[module]))
    assert summary(found) == [raised[module]]
    assert ("job.py", 5 if module == "unittest" else 4) in {w[:2] for w in where(found.raised[0])}


# -- As other tools print them, and as people pass them on --------------------------------------

DATALOADER = text(
    """
    Traceback (most recent call last):
      File "train.py", line 80, in <module>
        for batch in loader:
      File "/env/site-packages/torch/utils/data/dataloader.py", line 708, in __next__
        data = self._next_data()
      File "/env/site-packages/torch/_utils.py", line 733, in reraise
        raise exception
    FileNotFoundError: Caught FileNotFoundError in DataLoader worker process 1.
    Original Traceback (most recent call last):
      File "/env/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop
        data = fetcher.fetch(index)
      File "train.py", line 31, in __getitem__
        image = Image.open(self.paths[index])
    FileNotFoundError: [Errno 2] No such file or directory: '/data/img_7.jpg'

    """
)


def test_a_worker_s_traceback_is_inside_the_one_that_wraps_it() -> None:
    found = read(DATALOADER)
    assert summary(found) == [
        ("FileNotFoundError", "Caught FileNotFoundError in DataLoader worker process 1.", ""),
        ("FileNotFoundError", "[Errno 2] No such file or directory: '/data/img_7.jpg'", "inner"),
    ]
    assert where(found.raised[1])[-1] == ("train.py", 31, "__getitem__")
    assert [r.at for r in found.raised] == [7, 13]


def test_spawned_processes() -> None:
    lines = text(
        """
        Traceback (most recent call last):
          File "train.py", line 60, in <module>
            mp.spawn(main, nprocs=2)
          File "/env/site-packages/torch/multiprocessing/spawn.py", line 196, in join
            raise ProcessRaisedException(msg, error_index, failed_process.pid)
        torch.multiprocessing.spawn.ProcessRaisedException:

        -- Process 1 terminated with the following error:
        Traceback (most recent call last):
          File "/env/site-packages/torch/multiprocessing/spawn.py", line 90, in _wrap
            fn(i, *args)
          File "/job/train.py", line 44, in main
            loss = criterion(output, target)
        IndexError: Target 10 is out of bounds.
        """
    )
    found = read(lines)
    assert summary(found) == [
        ("torch.multiprocessing.spawn.ProcessRaisedException", "", ""),
        ("IndexError", "Target 10 is out of bounds.", "inner"),
    ]
    assert where(found.raised[1])[-1] == ("train.py", 44, "main")


def test_ray_task_errors() -> None:
    lines = text(
        """
        Traceback (most recent call last):
          File "tune.py", line 20, in <module>
            ray.get(train.remote(config))
          File "/env/site-packages/ray/_private/worker.py", line 2667, in get
            raise value.as_instanceof_cause()
        ray.exceptions.RayTaskError(KeyError): ray::train() (pid=812, ip=10.0.0.2)
          File "tune.py", line 11, in train
            return config["lr"]
        KeyError: 'lr'
        """
    )
    found = read(lines)
    assert summary(found)[0][0] == "ray.exceptions.RayTaskError(KeyError)"
    assert summary(found)[-1] == ("KeyError", "'lr'", "inner")
    assert where(found.raised[-1]) == [("tune.py", 11, "train")]
    assert found.raised[-1].at == 8


IPYTHON_OLD = text(
    """
    ---------------------------------------------------------------------------
    ValueError                                Traceback (most recent call last)
    <ipython-input-5-0a1b2c3d4e5f> in <module>
          1 model = build()
    ----> 2 fit(model)

    ~/project/train.py in fit(model, epochs)
         40     for epoch in range(epochs):
    ---> 41         step(model)
         42

    ValueError: logits and labels must have the same shape ((32, 10) vs (32, 1))
    """
)
IPYTHON_NEW = text(
    """
    ---------------------------------------------------------------------------
    ValueError                                Traceback (most recent call last)
    Cell In[5], line 2
          1 model = build()
    ----> 2 fit(model)

    File ~/project/train.py:41, in fit(model, epochs)
         40 for epoch in range(epochs):
    ---> 41     step(model)

    ValueError: logits and labels must have the same shape ((32, 10) vs (32, 1))
    """
)
IPYTHON_8 = [
    line.replace("Cell In[5], line 2", "Input In [5], in <cell line: 2>()") for line in IPYTHON_NEW
]


@pytest.mark.parametrize("lines", [IPYTHON_OLD, IPYTHON_NEW, IPYTHON_8], ids=["7", "8.6", "8.0"])
def test_notebooks(lines: list[str]) -> None:
    (raised,) = read(lines).raised
    assert raised.type == "ValueError"
    assert raised.message == "logits and labels must have the same shape ((32, 10) vs (32, 1))"
    assert raised.at == len(lines) - 1
    assert where(raised)[-1] == ("train.py", 41, "fit")
    assert [frame.line for frame in raised.frames] == [2, 41]
    assert len(raised.frames) == 2


def test_a_chain_in_a_notebook() -> None:
    lines = text(
        """
        KeyError                                  Traceback (most recent call last)
        File ~/env/site-packages/pandas/core/indexes/base.py:3802, in Index.get_loc(self, key)
           3801 try:
        -> 3802     return self._engine.get_loc(casted_key)

        KeyError: 'label'

        The above exception was the direct cause of the following exception:

        KeyError                                  Traceback (most recent call last)
        Cell In[3], line 1
        ----> 1 frame["label"]

        KeyError: 'label'
        """
    )
    found = read(lines)
    assert summary(found) == [("KeyError", "'label'", ""), ("KeyError", "'label'", "cause")]
    assert [r.at for r in found.raised] == [5, 13]


def stripped(lines: tuple[str, ...]) -> list[str]:
    return [line.strip() for line in lines]


@pytest.mark.parametrize(
    "name", ["cause", "context", "three in a chain", "message of several lines"]
)
def test_lost_indentation(name: str) -> None:
    found = read(stripped(printed(REAL[name].source)))
    assert [(r[0], r[1]) for r in summary(found)] == [(t, m) for t, m, _ in REAL[name].raised]


def test_lost_indentation_keeps_the_frames() -> None:
    lines = stripped(printed("def step(batch):\n    return batch / 0\n\nstep(1)\n"))
    assert where(read(lines).raised[0]) == [("job.py", 4, "<module>"), ("job.py", 2, "step")]


def test_lost_line_ends() -> None:
    line = (
        'Traceback (most recent call last): File "train.py", line 9, in <module> main() '
        'File "train.py", line 5, in main x = {}["lr"] KeyError: \'lr\''
    )
    (raised,) = read([line]).raised
    assert (raised.type, raised.message) == ("KeyError", "'lr'")
    assert where(raised) == [("train.py", 9, "<module>"), ("train.py", 5, "main")]


def test_a_record_of_a_logger_ends_a_message() -> None:
    lines = [*printed("int('a')"), "Epoch 3 started", "and so on"]
    breaks = [False] * (len(lines) - 2) + [True, False]
    (raised,) = read(lines, breaks).raised
    assert raised.message == "invalid literal for int() with base 10: 'a'"


@pytest.mark.parametrize(
    ("line", "header"),
    [
        (HEADER, True),
        (f"  {HEADER}", True),
        (f"Original {HEADER}", True),
        (f"  + Exception Group {HEADER}", True),
        ("KeyError                                  Traceback (most recent call last)", True),
        ("Stack (most recent call last):", False),
        ("Current thread 0x00007f (most recent call first):", False),
        ("the text 'Traceback (most recent call last)' in a sentence of the log", False),
    ],
)
def test_what_begins_a_traceback(line: str, header: bool) -> None:
    assert is_header(line) is header


@pytest.mark.parametrize(
    "lines",
    [
        [HEADER, "  File ", "", "", ""],
        [HEADER, "Epoch 3 started"],
    ],
)
def test_a_header_without_frames_gives_nothing(lines: list[str]) -> None:
    assert parse(lines, 0) is None


@pytest.mark.parametrize("lines", [[HEADER], [HEADER, ""], [f"  {HEADER}", "", " "]])
def test_a_header_that_ends_the_log_is_a_traceback_that_was_cut_off(lines: list[str]) -> None:
    found = parse(lines, 0)
    assert found is not None
    assert [(raised.type, raised.frames) for raised in found.raised] == [("", ())]


def test_a_traceback_that_was_cut_off_keeps_its_frames() -> None:
    lines = [HEADER, '  File "train.py", line 3, in <module>', "    fit()"]
    for rest in ([], [""], ["", "Epoch 3 started"]):
        found = parse(lines + rest, 0)
        assert found is not None
        (raised,) = found.raised
        assert (raised.type, raised.at) == ("", 2)
        assert [frame.file for frame in raised.frames] == ["train.py"]


@pytest.mark.parametrize("end", ["MemoryError", "MemoryError Any idea?", "MemoryError: too much"])
def test_a_traceback_that_lost_its_line_ends(end: str) -> None:
    line = f'{HEADER} File "a.py", line 1, in <module> fit() File "b.py", line 2, in fit {end}'
    found = parse([f"Saving ... {line}"], 0)
    assert found is not None
    (raised,) = found.raised
    assert raised.type == "MemoryError"
    assert [frame.file for frame in raised.frames] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    "task",
    [
        "ray::PPO.train() (pid=12)",
        "worker (pid=12, host=node-1)",
        "\ufffd[36mray::f()\ufffd[39m (pid=1)",
    ],
)
def test_the_traceback_that_ray_passes_on(task: str) -> None:
    lines = [
        HEADER,
        'File "main.py", line 1, in <module>',
        "ray.get(f)",
        f"ray.exceptions.RayTaskError: {task}",
        'File "worker.py", line 8, in f',
        "return d['a']",
        "KeyError: 'a'",
    ]
    found = parse(lines, 0)
    assert found is not None
    assert [raised.type for raised in found.raised] == ["ray.exceptions.RayTaskError", "KeyError"]


def test_endless_nesting_ends() -> None:
    lines = [HEADER, *[f"RuntimeError: {HEADER}"] * 5000]
    found = parse(lines, 0)
    assert found is None or len(found.raised) <= 5000


FRAGMENTS = st.sampled_from(
    [
        HEADER,
        f"Original {HEADER}",
        f"  + Exception Group {HEADER}",
        "  | ExceptionGroup: two (2 sub-exceptions)",
        "  +-+---------------- 1 ----------------",
        f"    | {HEADER}",
        "    +------------------------------------",
        "KeyError                                  Traceback (most recent call last)",
        "Cell In[3], line 1",
        "----> 1 x",
        '  File "train.py", line 3, in <module>',
        'File "train.py", line 3',
        "    x = 1",
        "    ^^^^^",
        "  [Previous line repeated 996 more times]",
        "ValueError: x",
        f"RuntimeError: {HEADER}",
        "ValueError: in user code:",
        "ray.exceptions.RayTaskError(KeyError): ray::f() (pid=1)",
        '"""',
        "",
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
        "-- Process 1 terminated with the following error:",
    ]
)


@given(st.lists(FRAGMENTS | st.text(max_size=30), max_size=40), st.data())
def test_any_lines_are_read_to_an_end(lines: list[str], data: st.DataObject) -> None:
    breaks = data.draw(
        st.none() | st.lists(st.booleans(), min_size=len(lines), max_size=len(lines))
    )
    for start, line in enumerate(lines):
        if is_header(line):
            found = parse(lines, start, breaks)
            if found is not None:
                assert found.start == start
                assert start < found.end <= len(lines)
                assert all(start <= raised.at < len(lines) for raised in found.raised)


def test_a_frame_keeps_its_source_line() -> None:
    plain = parse(
        [HEADER, '  File "a.py", line 1, in f', "    x = d['a']", "    ~^^^", "KeyError: 'a'"], 0
    )
    assert plain is not None
    assert plain.raised[0].frames[0].code == "x = d['a']"
    notebook = [
        "KeyError                                  Traceback (most recent call last)",
        "Cell In[3], line 2",
        "      1 d = {}",
        "----> 2 x = d['a']",
        "",
        "KeyError: 'a'",
    ]
    found = parse(notebook, 0)
    assert found is not None
    assert found.raised[0].frames[0].code == "x = d['a']"
