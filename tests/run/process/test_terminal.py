"""A job on a terminal has one of its own: size, colours, keys, Ctrl-C, Ctrl-Z and fg."""

from __future__ import annotations

import os
import shlex
import sys
import termios
from collections.abc import Callable
from pathlib import Path

from tests.run.conftest import RUN, Kept, Screen, command
from tests.waiting import PATIENCE_S

Open = Callable[..., Screen]
PYTHON = sys.executable
REPORT = (
    "import os, sys; print([os.isatty(i) for i in range(3)], os.get_terminal_size(1) if "
    "os.isatty(1) else os.get_terminal_size(2) if os.isatty(2) else None, flush=True)"
)
ALL = b"[True, True, True] os.terminal_size(columns=99, lines=33)"


def _line(*words: str) -> str:
    return shlex.join(command(*words))


def test_what_is_a_terminal_outside_is_one_for_the_job(screen: Open, kept: Kept) -> None:
    opened = screen(*command(PYTHON, "-c", REPORT))
    opened.wait_for(ALL)
    assert opened.wait() == 0
    assert kept.output == ALL + b"\n"


def test_only_what_is_a_terminal_outside_is_one(screen: Open, tmp_path: Path) -> None:
    line = _line(PYTHON, "-c", REPORT)
    for redirected, told in (
        ("</dev/null", b"[False, True, True] os.terminal_size(columns=99, lines=33)"),
        ("2>/dev/null", b"[True, True, False] os.terminal_size(columns=99, lines=33)"),
        ("| cat", b"[True, False, True] os.terminal_size(columns=99, lines=33)"),
        ("2>&1 | cat", b"[True, False, False] None"),
    ):
        opened = screen("sh", "-c", f"{line} {redirected}")
        opened.wait_for(told + b"\r\n")
        assert opened.wait() == 0


def test_bytes_on_a_terminal_are_as_without_us(screen: Open, kept: Kept) -> None:
    script = r"printf '\033[31mred\033[0m 10%%\r 20%%\r 30%%\nend\n'"
    bare, ours = screen("sh", "-c", script), screen(*command("sh", "-c", script))
    assert bare.wait() == ours.wait() == 0
    assert ours.text == bare.text
    assert kept.output == b"\033[31mred\033[0m 10%\r 20%\r 30%\nend\n"
    half = screen("sh", "-c", f"{_line('sh', '-c', script)} </dev/null")
    assert half.wait() == 0
    assert half.text == bare.text
    assert kept.output == b"\033[31mred\033[0m 10%\r 20%\r 30%\nend\n"


def test_keys_go_to_the_job_and_the_terminal_is_given_back(screen: Open) -> None:
    opened = screen(*command("sh", "-c", "echo ready; read word; echo got $word; cat; echo over"))
    opened.wait_for(b"ready\r\n")
    opened.type(b"hello\r")
    opened.wait_for(b"hello\r\ngot hello\r\n")
    opened.type(b"more\r\x04")
    opened.wait_for(b"more\r\nmore\r\nover\r\n")
    assert opened.wait() == 0
    assert termios.tcgetattr(opened.master) == opened.settings


def test_ctrl_c_reaches_the_job_once(screen: Open, kept: Kept) -> None:
    program = (
        "import time\ntry:\n    print('ready', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('once', flush=True); time.sleep(0.5); raise SystemExit(9)"
    )
    opened = screen(*command(PYTHON, "-c", program))
    opened.wait_for(b"ready\r\n")
    opened.type(b"\x03")
    opened.wait_for(b"once\r\n")
    assert opened.wait() == 9
    assert kept.ended.why == "user"


def test_a_change_of_size_reaches_the_job(screen: Open) -> None:
    program = (
        "import os, signal\n"
        "signal.signal(signal.SIGWINCH, lambda *_: print(os.get_terminal_size(), flush=True))\n"
        "print('ready', flush=True)\nwhile True: signal.pause()"
    )
    opened = screen(*command(PYTHON, "-c", program))
    opened.wait_for(b"ready\r\n")
    opened.resize(20, 70)
    opened.wait_for(b"columns=70, lines=20")
    opened.type(b"\x03")
    opened.wait()


def test_a_shell_stops_the_job_and_brings_it_back(screen: Open, kept: Kept, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("echo ready\nread word\necho got $word\n")
    shell = screen("bash", "--norc", "--noprofile", "--noediting", "-i")
    shell.type(b"PS1='>> '\r")
    shell.wait_for(b"\r\n")
    shell.type(f"{' '.join(RUN)} -- sh {script}\r".encode())
    shell.wait_for(b"job.sh\r\n")
    shell.wait_for(b"ready\r\n")
    shell.type(b"\x1a")
    shell.wait_for(b"Stopped")
    shell.wait_for(b">> ")
    shell.type(b"echo $((40 + 2))\r")
    shell.wait_for(b"42\r\n")
    shell.type(b"fg\r")
    shell.wait_for(b"-- sh")
    shell.type(b"again\r")
    shell.wait_for(b"got again\r\n")
    shell.wait_for(b">> ")
    shell.type(b"exit 4\r")
    assert shell.wait() == 4
    assert {"stopped", "continued"} <= set(kept.events)


def test_a_job_started_in_the_background_can_be_brought_to_the_front(
    screen: Open, kept: Kept
) -> None:
    shell = screen("bash", "--norc", "--noprofile", "--noediting", "-i")
    shell.type(f"{_line('sh', '-c', 'sleep 1; read word; echo got $word')} &\r".encode())
    shell.wait_for(b"[1] ")
    shell.type(b"echo $((40 + 2))\r")
    shell.wait_for(b"42\r\n")
    shell.type(b"fg\r")
    shell.wait_for(b"sleep 1")
    shell.type(b"front\r")
    shell.wait_for(b"got front\r\n")


def test_a_terminal_that_is_closed_hangs_the_job_up(screen: Open, kept: Kept) -> None:
    opened = screen(*command("sh", "-c", "echo $$; exec sleep 60"))
    opened.wait_for(b"\r\n")
    os.close(opened.master)
    opened.master = os.open(os.devnull, os.O_RDWR)
    assert opened.process.wait(PATIENCE_S) == 129
