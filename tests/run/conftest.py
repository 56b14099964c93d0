"""Jobs that are really run: by the command, beside it a terminal where one is wanted."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from epochzero.run.records.journal import NAME, read_journal
from epochzero.run.records.model import End, JobEvent, Output, Record
from tests.waiting import PATIENCE_S, wait_until

TESTS = Path(__file__).resolve().parents[1]
Ask = Callable[..., str]
RUN = (sys.executable, "-m", "epochzero", "run")


class Kept:
    """What runs have left in a home."""

    def __init__(self, home: Path) -> None:
        self.home = home

    @property
    def folder(self) -> Path:
        """Of the last attempt."""
        return max(self.home.glob("runs/*/*"), key=lambda path: path.stat().st_mtime_ns)

    @property
    def records(self) -> list[Record]:
        return [record for _, record in read_journal(self.folder / NAME)]

    @property
    def ended(self) -> End:
        return next(record for record in self.records if isinstance(record, End))

    @property
    def events(self) -> dict[str, JobEvent]:
        return {record.what: record for record in self.records if isinstance(record, JobEvent)}

    @property
    def output(self) -> bytes:
        return self.log("output")

    def log(self, name: str) -> bytes:
        """All that is kept of a log."""
        outputs = (record for record in self.records if isinstance(record, Output))
        paths = next(output.paths for output in outputs if output.name == name)
        return b"".join((self.folder / path).read_bytes() for path in paths)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """A home of its own for the runs of a test, which start in an empty directory.

    In a repository, a run that fails looks there for the place of its fault: six seconds of processor time in ours.
    """
    home = tmp_path / "home"
    monkeypatch.setenv("EPOCHZERO_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return Kept(home)


@pytest.fixture(scope="session")
def preloaded_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The start of a command line whose `epochzero run` has been imported; what it does is the same."""
    with command_server(tmp_path_factory.mktemp("commands")) as client:
        yield (*client, "epochzero", "run")


@contextmanager
def command_server(folder: Path, *modules: str) -> Iterator[tuple[str, ...]]:
    """The start of a command line whose program, `epochzero` or `python`, has imported its modules and these."""
    address = folder / "socket"
    words = [sys.executable, TESTS / "command_server.py", address, *modules]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as server:
        wait_until(lambda: address.exists() or server.poll() is not None)
        yield (sys.executable, "-I", "-S", str(TESTS / "command_client.py"), str(address))
        server.kill()


@pytest.fixture
def run(
    kept: Kept, preloaded_run: tuple[str, ...]
) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs a job to its end; options stand before ``--``."""

    def call(*words: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
        given = {"capture_output": True, "timeout": PATIENCE_S, **how}
        line = [*preloaded_run, *command(*words)[len(RUN) :]]
        return subprocess.run(line, check=False, **given)

    return call


@pytest.fixture
def ask(kept: Kept, preloaded_run: tuple[str, ...]) -> Ask:
    """What another command prints of the same home."""

    def call(command: str, *words: str) -> str:
        line = [*preloaded_run[:-1], command, *words]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout

    return call


@pytest.fixture
def start(kept: Kept) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a job, in a process group of its own; what still runs after the test is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def call(*words: str, **how: Any) -> subprocess.Popen[bytes]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "process_group": 0}
        started.append(subprocess.Popen(command(*words), **{**pipes, **how}))
        return started[-1]

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait()


def command(*words: str) -> list[str]:
    """The command line of a run."""
    return [*RUN, *words] if "--" in words else [*RUN, "--", *words]


class Screen:
    """A terminal with a program in it, as a person has it."""

    def __init__(self, words: Sequence[str], size: tuple[int, int] = (33, 99)) -> None:
        self.master, slave = pty.openpty()
        self.resize(*size)
        self.text = b""
        self.process = subprocess.Popen(
            words,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.settings = termios.tcgetattr(slave)
        os.close(slave)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def wait_for(self, text: bytes) -> bytes:
        """Reads until a text is there, and forgets what stands before it."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.text:
            left = end - time.monotonic()
            assert left > 0, self.text
            assert select.select([self.master], [], [], left)[0], self.text
            try:
                self.text += os.read(self.master, 65536)
            except OSError:
                assert text in self.text, self.text
        before, _, self.text = self.text.partition(text)
        return before

    def wait(self) -> int:
        """Reads to the end; the exit code."""
        with suppress(OSError):
            while select.select([self.master], [], [], PATIENCE_S)[0]:
                self.text += os.read(self.master, 65536)
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        os.close(self.master)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def screen(kept: Kept) -> Iterator[Callable[..., Screen]]:
    """Opens terminals."""
    screens: list[Screen] = []

    def call(*words: str) -> Screen:
        screens.append(Screen(words))
        return screens[-1]

    yield call
    for opened in screens:
        opened.close()


def gone(pid: int) -> bool:
    """Whether a process has ended, or does so soon."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
