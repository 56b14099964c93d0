"""``epochzero label``: its screen in a real terminal, and its answers."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from conftest import Command

KEYS = {"key": "ccecb", "path": "baab"}


class Terminal:
    """A process in a terminal of its own; what it draws is read as text."""

    def __init__(
        self, arguments: list[str], columns: int = 80, rows: int = 24, **environment: str
    ) -> None:
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.environ.update(environment)
            os.execv(sys.executable, [sys.executable, "-m", "epochzero", "label", *arguments])
        self.seen = ""
        self.code: int | None = None

    def until(self, text: str, seconds: float = PATIENCE_S) -> str:
        """The last screen, once it has the text."""
        end = time.monotonic() + seconds
        while text not in self.screen:
            assert time.monotonic() < end, f"{text!r} did not come:\n{self.screen}"
            if select.select([self.file], [], [], 0.2)[0]:
                try:
                    data = os.read(self.file, 1 << 16)
                except OSError:
                    data = b""
                assert data, f"ended without {text!r}:\n{self.seen}"
                self.seen += data.decode("utf-8", "replace")
        return self.screen

    @property
    def screen(self) -> str:
        """What was drawn since the last time from the top, without escape sequences."""
        last = self.seen.rsplit("\x1b[1;1H", 1)[-1]
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last).replace("\r", "")

    def press(self, keys: str) -> None:
        self.seen = ""
        os.write(self.file, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self) -> int:
        """Its exit code."""
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.file)
        return self.code


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "f.jsonl"
    log = (
        "first line\n"
        + "filler\n" * 200
        + "\x1b[2J\x1b]0;evil\x07 mid\n"
        + "filler\n" * 200
        + "password=hunter2x\n"
        + "KeyError: 'lr'\n"
    )
    records = [{"id": f"job-{n}", "title": "\x1b[31mJob 日本", "log": log} for n in range(2)]
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    return file


@pytest.fixture
def terminal(source: Path) -> Iterator[Terminal]:
    one = Terminal([str(source), "--as", "alice"], PAGER="cat")
    yield one
    if one.code is None:
        os.kill(one.pid, signal.SIGKILL)
        one.end()


def test_labelling_in_a_terminal(terminal: Terminal, source: Path) -> None:
    screen = terminal.until("q quit")
    # The end of a log is shown first, and everything fits the terminal.
    assert "KeyError: 'lr'" in screen
    assert len(screen.split("\n")) <= 24
    assert max(map(len, screen.split("\n"))) <= 80
    assert "password=[redacted]" in screen
    # The whole record, its control characters made visible, and the definitions are in the pager.
    terminal.press("/")
    whole = terminal.until("Press any key")
    assert "first line" in whole
    assert "␛[2J␛]0;evil␇ mid" in whole
    terminal.press(" ")
    terminal.until("Which kind")
    terminal.press("?")
    definitions = terminal.until("Press any key")
    assert "Failures that only deep learning programs have" in definitions
    assert "The log shows no failure" in definitions
    terminal.press(" ")
    terminal.until("Which kind")
    terminal.press("c")
    terminal.until("Key Not Found")
    terminal.press("u")
    terminal.until("Which kind")
    terminal.press("n")
    terminal.until("Note")
    terminal.press("unsure\r")
    terminal.until("note: unsure")
    terminal.press(KEYS["key"])
    terminal.until("1 of 2 labelled")
    terminal.resize(60, 20)
    terminal.press("z")
    assert len(terminal.until("z has no function here").split("\n")) <= 20
    terminal.press("q")
    terminal.until("1 of 2 records")
    assert terminal.end() == 0
    lines = (source.parent / "f.jsonl.labels/alice.jsonl").read_text().splitlines()
    assert [json.loads(one)["did"] for one in lines] == ["answer", "undo", "note", *["answer"] * 5]


def test_a_session_that_is_killed_loses_nothing(terminal: Terminal, source: Path) -> None:
    terminal.until("Which kind")
    terminal.press("c")
    terminal.until("Which failure?")
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.end() == -signal.SIGKILL
    again = Terminal([str(source), "--as", "alice"])
    again.until("Which failure?")
    again.press("\x03")
    again.until("0 of 2 records")
    assert again.end() == 0


def write_labels(source: Path, name: str, *words: tuple[str, str]) -> None:
    folder = source.parent / "f.jsonl.labels"
    folder.mkdir(exist_ok=True)
    with (folder / f"{name}.jsonl").open("w") as file:
        for number, (dimension, category) in enumerate(words):
            for question, value in (("dimension", dimension), ("category", category)):
                line = {
                    "time": "",
                    "did": "answer",
                    "id": f"job-{number}",
                    "question": question,
                    "value": value,
                }
                file.write(json.dumps(line) + "\n")


def test_agreement_disagreements_and_export(run: Command, source: Path) -> None:
    key, path = ("general_code_error", "key_not_found"), ("execution_environment", "path_not_found")
    write_labels(source, "alice", key, key)
    write_labels(source, "bob", key, path)
    told = run("label", source, "--agreement")
    assert told.code == 0
    assert "1 of 2 equal (50.0\xa0%)" in told.out
    assert "Cohen's kappa 0.00" in told.out
    as_json = json.loads(run("label", source, "--agreement", "--format", "json").out)
    assert as_json["questions"][1]["pairs"][0]["share"] == 0.5
    listed = run("label", source, "--disagreements").out
    assert "alice key_not_found, bob path_not_found" in listed
    assert "\x1b[31m" not in listed
    out = source.with_name("out.jsonl")
    assert "1  unanimous" in run("label", source, "--export", out).out
    assert json.loads(out.read_text().splitlines()[0])["label"]["category"] == "key_not_found"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "missing annotator"),
        (["--as", "a", "--agreement"], "mutually exclusive"),
        (["--agreement"], "contains no labels"),
        (["--as", "a", "--scheme", "none.toml"], "cannot be read"),
        (["--as", "../a"], "not a valid annotator name"),
        (["--as", "a"], "requires a terminal"),
    ],
)
def test_what_cannot_be_done_is_said(
    run: Command, source: Path, arguments: list[str], told: str
) -> None:
    done = run("label", source, *arguments)
    assert done.code == 2
    assert told in done.err
