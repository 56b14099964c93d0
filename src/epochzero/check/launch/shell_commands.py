"""Shells that a command starts: scripts, command texts, arguments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from epochzero.check.launch.builtins import readable, switch
from epochzero.check.launch.model import COMMAND, Word
from epochzero.check.launch.python import nearest
from epochzero.check.launch.setting import Script, Setting, read_text
from epochzero.check.launch.shell import run_script
from epochzero.errors import InputError
from epochzero.file_access import is_file, is_folder

SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_SHELL_VALUES = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})


def run_shell(words: Sequence[Word], setting: Setting) -> None:
    """``bash x.sh args``, ``bash -c "..."``."""
    at = 1
    while at < len(words) and words[at].text[:1] in ("-", "+"):
        text = words[at].text
        at += 2 if text in _SHELL_VALUES or (text[-1:] == "o" and text[:2] != "--") else 1
        if text[:2] != "--" and "c" in text and at < len(words):
            inner = _started_with(words[1:at], setting)
            inner.arguments = tuple(words[at + 2 :])
            run_text(words[at], inner, words[at + 1].text if at + 1 < len(words) else "")
            return
    if at >= len(words) and setting.input is not None:
        run_text(setting.input, setting.inner())
        return
    if at >= len(words):
        reason = "its commands are read from standard input"
        setting.record.unknown(f"`{words[0].text}`", reason, words[0].place)
        return
    inner = _started_with(words[1:at], setting)
    run_shell_file(words[at:], inner)
    setting.fetched = setting.fetched or inner.fetched


def _started_with(switches: Sequence[Word], setting: Setting) -> Setting:
    """The setting of a shell that is started with options: ``bash -eu``."""
    inner = setting.inner()
    inner.draft = inner.draft.with_script(stops_at_error=False)
    switch([word.text for word in switches], inner)
    return inner


def run_text(word: Word, setting: Setting, name: str = "") -> None:
    """Run a command text in a shell; ``name`` is its ``$0``."""
    text = readable(word)
    if not text and not word.known:
        reason = "its text depends on the run"
        setting.record.unknown("a text that the shell runs", reason, word.place)
        return
    run_shell_script(Script(word.place.path, text, word.place.line, name), setting)


def run_shell_file(words: Sequence[Word], setting: Setting) -> None:
    """Run a shell script with its arguments."""
    script = read_script(words[0], setting)
    if script is None:
        return
    first = script.text.split("\n", 1)[0]
    if first.startswith("#!") and words[0].text[:1] in "./":
        switch(first.split()[1:], setting)
    setting.arguments = tuple(words[1:])
    run_shell_script(script, setting)


def run_shell_script(script: Script, setting: Setting) -> None:
    """Walk a script as a separate process: it sees exported variables and no functions."""
    environment = setting.environment()
    setting.draft = replace(setting.draft, environment=environment)
    setting.variables, setting.exported, setting.functions = {}, set(), {}
    setting.input = None
    run_script(script, setting)


def read_script(word: Word, setting: Setting) -> Script | None:
    """Return the script that a command names.

    Raises:
        InputError: it is named on the command line itself and cannot be read.
    """
    if not word.known:
        reason = "which script is run depends on the run"
        setting.record.unknown(f"`{word.text}`", reason, word.place)
        return None
    path = next((p for p in setting.candidates(word.text) if is_file(p)), None)
    if path is None:
        path = Path(os.path.abspath(setting.draft.folder / word.text))
    try:
        text = read_text(path)
    except InputError as error:
        reason = str(error).removeprefix(f"{path}: ")
        near = None if is_file(path) or is_folder(path) else nearest(path, setting.record.root)
        hint = f"; did you mean {setting.label(near)}?" if near else ""
        if word.place.path == COMMAND and not setting.lost:
            raise InputError(f"{word.text}: {reason}{hint}") from error
        setting.record.unknown(f"the script {word.text}", reason + hint, word.place)
        return None
    return Script(setting.label(path), text, 1, word.text)
