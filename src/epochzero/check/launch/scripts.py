"""Problems of a script as a file: line ends, syntax, first line, mode."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

from epochzero.check.launch.model import COMMAND, Word
from epochzero.check.launch.setting import Script, Setting
from epochzero.file_access import open_file

PROGRAM_SECONDS = 4.0
_PLACES = "/bin:/usr/bin:/usr/local/bin"
_FAULT = re.compile(r"^\S*bash: line (\d+): (.*)", re.MULTILINE)
_OTHER_SHELL = re.compile(r"#!.*\b(zsh|ksh|fish|t?csh)\b")
_BREAKS = re.compile(r"(\.py|\.sh|\b(then|do|fi|done|else|esac|in)|\bset [-+]\S+)\r$", re.MULTILINE)
"""Matches lines that fail if their last word ends in a carriage return."""


def note_line_ends(script: Script, setting: Setting) -> bool:
    """Record a script with Windows line ends; return whether it has them."""
    if "\r\n" not in script.text or script.label == COMMAND:
        return False
    fails = _BREAKS.search(script.text)
    start = fails.start() if fails else script.text.index("\r\n")
    row = script.text.count("\n", 0, start)
    certain = setting.sure and fails is not None
    setting.record.problem("line ends", script.place(row), script.label, certain=certain)
    return True


def fault_of(text: str) -> tuple[int, str] | None:
    """The line and message with which bash rejects a script; None if it accepts it.

    ``bash -n`` reads commands and runs none of them (bash(1), ``set -n``).
    """
    bash = shutil.which("bash", path=_PLACES)
    if bash is None or _OTHER_SHELL.match(text):
        return None
    try:
        done = subprocess.run(
            [bash, "--norc", "--noprofile", "-n"],
            input=text.encode("utf-8", errors="replace"),
            capture_output=True,
            timeout=PROGRAM_SECONDS,
            env={"LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _FAULT.search(done.stderr.decode("utf-8", "replace"))
    return (int(found[1]), found[2]) if found and done.returncode else None


def note_not_executable(word: Word, path: Path, setting: Setting) -> None:
    """Record why a file cannot be run by its path: its mode, its first line.

    On the command line itself a script may be named only so that it is read; there nothing is certain.
    """
    record, place = setting.record, word.place
    changed = any(source.text == "chmod" for source in record.programs)
    if setting.draft.container or setting.fetched or changed or not word.known:
        return
    certain = setting.sure and place.path != COMMAND
    try:
        with open_file(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            first = file.readline(4096).decode("utf-8", "replace")
    except OSError:
        return
    if not mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH):
        record.problem("mode", place, word.text, certain=certain)
    elif not first.startswith("#!"):
        if path.suffix == ".py":
            record.problem("first line", place, word.text, certain=certain)
    elif first.endswith("\r\n"):
        record.problem("line ends", place, word.text, certain=certain)
    elif words := first[2:].split():
        program = words[1] if words[0].endswith("/env") and len(words) > 1 else words[0]
        if not program.startswith("-"):
            record.problem("interpreter", place, program, certain=certain)
