"""A command, from its first word to the Python programs that it runs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from epochzero import launchers
from epochzero.check.launch import batch
from epochzero.check.launch.builtins import BUILTINS
from epochzero.check.launch.launch import FETCHING, SCRIPT_NAMES, launch
from epochzero.check.launch.manifests import run_manifest
from epochzero.check.launch.model import COMMAND, Word
from epochzero.check.launch.python import (
    is_python,
    pip_install,
    run_code,
    run_module,
    run_script_file,
    split,
)
from epochzero.check.launch.scripts import note_not_executable
from epochzero.check.launch.setting import MOST_DEPTH, Script, Setting
from epochzero.check.launch.shell_commands import SHELLS, read_script, run_shell, run_shell_file
from epochzero.file_access import is_file, open_file

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ELF = b"\x7fELF"
_ELSEWHERE = frozenset({"ssh", "xargs", "parallel", "tmux", "screen", "find", "watch", "pdsh"})
"""Programs that run others elsewhere, or with words of their own."""
_NOT_WRAPPERS = BUILTINS | frozenset(
    {
        "cat", "ls", "cp", "mv", "rm", "mkdir", "rmdir", "ln", "chmod", "chown", "touch",
        "head", "tail", "grep", "egrep", "sed", "awk", "cut", "sort", "uniq", "wc", "tr",
        "diff", "which", "whereis", "file", "find", "xargs", "git", "kill", "pkill", "pgrep",
        "killall", "ps", "date", "df", "du", "tee", "install", "rsync", "scp", "ssh", "tmux",
        "screen", "watch", "man", "less", "more", "tar", "zip"
    }
)  # fmt: skip
"""Programs whose arguments are never run, even if ``python`` is one of them."""


def follow(words: Sequence[Word], setting: Setting) -> None:
    """Follow a command to the Python programs that it runs, and record them.

    Args:
        words: the command.
        setting: its context; effects on later commands are stored in it.

    Raises:
        InputError: a script or file on the command line itself does not exist, cannot be read or has the wrong format.
    """
    words = _without_assignments(words, setting)
    if not words:
        return
    if setting.depth > MOST_DEPTH:
        setting.record.unknown(f"`{words[0].text}`", "too many launchers", words[0].place)
        return
    words = _joined(words)
    head = words[0]
    name = os.path.basename(head.text)
    launcher = launchers.by_name().get(name)
    if not head.known:
        _follow_unknown(words, setting)
    elif is_python(head.text):
        _python(words, setting)
    elif launcher is not None:
        launch(launcher, words, setting)
    elif name in SHELLS:
        run_shell(words, setting)
    elif name in ("pip", "pip3"):
        setting.note_program(head)
        pip_install(words[1:], setting)
    elif (name == "jupyter" and any(word.text == "--execute" for word in words)) or (
        name == "papermill" and len(words) > 1
    ):
        _notebook(words, setting)
    elif "/" in head.text or os.path.splitext(head.text)[1] or _is_plain_file(head, setting):
        _file(words, setting)
    else:
        _other(words, setting)


def _joined(words: Sequence[Word]) -> Sequence[Word]:
    """Join the two words of a launcher's name: ``docker compose``."""
    name = " ".join(word.text for word in words[:2])
    return [replace(words[0], text=name), *words[2:]] if name in launchers.by_name() else words


def _without_assignments(words: Sequence[Word], setting: Setting) -> Sequence[Word]:
    """Return the words after ``A=1 B=2``, and set the variables for the command."""
    at = 0
    while at < len(words) and (found := _ASSIGNMENT.fullmatch(words[at].text)):
        _set(setting, found[1], found[2] if words[at].known else None)
        at += 1
    return words[at:]


def _set(setting: Setting, name: str, value: str | None) -> None:
    environment = {**setting.draft.environment, name: value}
    setting.draft = replace(setting.draft, environment=environment)


def _is_plain_file(word: Word, setting: Setting) -> bool:
    return word.place.path == COMMAND and is_file(setting.draft.folder / word.text)


def _follow_unknown(words: Sequence[Word], setting: Setting) -> None:
    """``$PYTHON train.py``: a word before a Python file, or whose name suggests it, is an interpreter."""
    head = words[0]
    kind, rest = split(words[1:])
    python = kind == "script" and rest[0].text.endswith(SCRIPT_NAMES)
    named = re.fullmatch(r"\$\{?\w*(PYTHON|PY)\w*\}?", head.text, re.IGNORECASE)
    if python or (named and kind in ("module", "code", "script")):
        _run_python(kind, rest, setting, head)
    else:
        setting.record.unknown(f"`{head.text}`", "what is run depends on the run", head.place)


def _python(words: Sequence[Word], setting: Setting) -> None:
    """``python ...``."""
    kind, rest = split(words[1:])
    if kind == "module" and rest[0].known and rest[0].text in ("pip", "ensurepip", "venv"):
        pip_install(rest[1:], setting)
        return
    launcher = launchers.by_module().get(rest[0].text) if kind == "module" else None
    if launcher is not None:
        inner = setting.inner()
        inner.draft = replace(inner.draft, program=words[0].text)
        launch(launcher, rest, inner, module=True)
    else:
        _run_python(kind, rest, setting, words[0])


def _run_python(kind: str, rest: Sequence[Word], setting: Setting, program: Word) -> None:
    """Follow what Python runs: a script, a module, or code that cannot be read here."""
    if kind == "script":
        run_script_file(rest, setting, program.text)
        _nested(rest[1:], setting)
    elif kind == "module":
        run_module(rest, setting, program.text)
    elif kind == "code":
        run_code(rest[0], rest, setting, program.text)
    elif kind == "input" and setting.input is not None:
        run_code(setting.input, [program, *rest], setting, program.text)
    elif kind == "input":
        reason = "its program comes from its standard input; put it in a file to have it checked"
        setting.record.unknown(f"`{os.path.basename(program.text)}`", reason, program.place)


def _nested(arguments: Sequence[Word], setting: Setting) -> None:
    """Follow a command among the arguments of a program that seems to run it: ``run.py 2 python x.py``."""
    for at, word in enumerate(arguments):
        starts = is_python(word.text) or os.path.basename(word.text) in launchers.by_name()
        if not word.known or not starts:
            continue
        rest = arguments[at + 1 :]
        script = next((w for w in rest if not w.text.startswith("-")), None)
        if script is None or not script.text.endswith(SCRIPT_NAMES):
            continue
        if any(is_file(path) for path in setting.candidates(script.text)):
            inner = setting.inner()
            inner.sure = False
            inner.follow(arguments[at:])
            return


def _other(words: Sequence[Word], setting: Setting) -> None:
    """Follow an unknown program, which may be a launcher."""
    name = os.path.basename(words[0].text)
    setting.note_program(words[0])
    if name in FETCHING:
        setting.fetched = name
    if name in _ELSEWHERE and any("python" in word.text for word in words[1:]):
        reason = "what it starts is not followed"
        setting.record.unknown(f"`{name}`", reason, words[0].place)
    elif name not in _NOT_WRAPPERS:
        inner = setting.inner()
        inner.draft = replace(inner.draft, launchers=(*inner.draft.launchers, name))
        _nested(words[1:], inner)


def _notebook(words: Sequence[Word], setting: Setting) -> None:
    """``jupyter nbconvert --execute x.ipynb``."""
    for word in words[1:]:
        if word.text.endswith(".ipynb"):
            reason = "a notebook is not followed; convert it to a script to have it checked"
            setting.record.unknown(f"the notebook {word.text}", reason, word.place)
            return


def _file(words: Sequence[Word], setting: Setting) -> None:
    """Follow a file that is run by its path: Python, a shell script, a batch file, a manifest, or a program."""
    word = words[0]
    path = next((p for p in setting.candidates(word.text) if is_file(p)), None)
    suffix = os.path.splitext(word.text)[1]
    if path is not None and "/" in word.text:
        note_not_executable(word, path, setting)
    if path is not None and word.place.path != COMMAND:
        setting.note_program(word)
    if path is None and ("/" in word.text and suffix == ""):
        _other(words, setting)
        return
    if suffix in SCRIPT_NAMES:
        run_script_file(words, setting, "python")
    elif suffix == ".ipynb":
        _notebook([word, *words], setting)
    elif suffix in (".yaml", ".yml"):
        run_manifest(word, setting)
    elif (script := _read_script_or_program(words, path, setting)) is not None:
        _by_first_line(words, script, setting)


def _read_script_or_program(
    words: Sequence[Word], path: Path | None, setting: Setting
) -> Script | None:
    """Return the text of a script; record a binary program."""
    try:
        if path is None:
            raise FileNotFoundError
        with open_file(path) as file:
            head = file.read(4)
    except (OSError, ValueError):
        head = b""  # reading the whole file reports the reason
    if head == _ELF:
        _other(words, setting)
        return None
    return read_script(words[0], setting)


def _by_first_line(words: Sequence[Word], script: Script, setting: Setting) -> None:
    first = script.text.split("\n", 1)[0]
    if first.startswith("#!") and "python" in first:
        run_script_file(words, setting, "python")
    elif words[0].place.path == COMMAND and (launcher := batch.launcher_of(script.text)):
        submit = replace(words[0], text=launcher.names[0])
        launch(launcher, [submit, *words], setting)
    elif first.startswith("#!") and "sh" not in first:
        _other(words, setting)
    else:
        run_shell_file(words, setting.inner())
