"""A command: launcher by launcher down to the Python program that it runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from epochzero import launchers
from epochzero.check.findings import SourceLocation
from epochzero.check.job import batch, compose, kubernetes
from epochzero.check.job.builtins import BUILTINS, readable, switch
from epochzero.check.job.containers import Container
from epochzero.check.job.environments import (
    conda_environment,
    interpreter_of_script,
    project_environment,
)
from epochzero.check.job.make import recipes
from epochzero.check.job.meanings import MEANINGS, totals, with_said
from epochzero.check.job.model import COMMAND, CommandSource, Word
from epochzero.check.job.nodes import entry, scalars
from epochzero.check.job.options import Taken, take
from epochzero.check.job.python import (
    is_python,
    nearest,
    note_requirements,
    pip_install,
    run_code,
    run_module,
    run_script_file,
    split,
)
from epochzero.check.job.scripts import note_not_executable
from epochzero.check.job.setting import AT_HOME, MOST_DEPTH, Record, Script, Setting, read_text
from epochzero.check.job.shell import run_script
from epochzero.errors import InputError
from epochzero.file_access import is_file, is_folder, open_file
from epochzero.launchers import COUNTS, Launcher, Option

_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_SHELL_VALUES = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ELF = b"\x7fELF"
_SCRIPT_NAMES = (".py", ".pyw")
_FETCHING = frozenset(
    {
        "git", "wget", "curl", "tar", "unzip", "cp", "mv", "rsync", "scp", "aws", "gsutil",
        "gcloud", "az", "s3cmd", "rclone", "hg", "svn", "ln", "install", "make", "cmake",
        "ninja", "huggingface-cli", "hf", "kaggle", "gdown", "7z", "gunzip", "patch", "dvc",
        "jupyter", "jupytext"
    }
)  # fmt: skip
"""Programs that may make a file that is not there yet."""
_ELSEWHERE = frozenset({"ssh", "xargs", "parallel", "tmux", "screen", "find", "watch", "pdsh"})
"""Programs that run others elsewhere, or with words that only they know."""
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_NOT_WRAPPERS = BUILTINS | frozenset(
    {
        "cat", "ls", "cp", "mv", "rm", "mkdir", "rmdir", "ln", "chmod", "chown", "touch",
        "head", "tail", "grep", "egrep", "sed", "awk", "cut", "sort", "uniq", "wc", "tr",
        "diff", "which", "whereis", "file", "find", "xargs", "git", "kill", "pkill", "pgrep",
        "killall", "ps", "date", "df", "du", "tee", "install", "rsync", "scp", "ssh", "tmux",
        "screen", "watch", "man", "less", "more", "tar", "zip"
    }
)  # fmt: skip
"""Programs whose arguments are not run, though ``python`` may stand among them."""


def follow(words: Sequence[Word], setting: Setting) -> None:
    """Follows a command to the Python programs that it runs, which are noted in the record.

    Args:
        words: the command.
        setting: where it is run; what the command changes for those after it is noted there.

    Raises:
        InputError: on the command line itself a script or file is named that is not there, cannot
            be read or is not what it should be.
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
        _launch(launcher, words, setting)
    elif name in _SHELLS:
        _shell(words, setting)
    elif name in ("pip", "pip3"):
        _program(head, setting)
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
    """The words, with a launcher whose name is two of them as one: ``docker compose``."""
    name = " ".join(word.text for word in words[:2])
    return [replace(words[0], text=name), *words[2:]] if name in launchers.by_name() else words


def _without_assignments(words: Sequence[Word], setting: Setting) -> Sequence[Word]:
    """The words after ``A=1 B=2``, which are set for the command."""
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
    """``$PYTHON train.py``: what is before a Python file, or named for it, is an interpreter."""
    head = words[0]
    kind, rest = split(words[1:])
    python = kind == "script" and rest[0].text.endswith(_SCRIPT_NAMES)
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
        inner = _inner(setting)
        inner.draft = replace(inner.draft, program=words[0].text)
        _launch(launcher, rest, inner, module=True)
    else:
        _run_python(kind, rest, setting, words[0])


def _run_python(kind: str, rest: Sequence[Word], setting: Setting, program: Word) -> None:
    """What Python runs: a script, a module, or what cannot be read here."""
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
    """A command among the arguments of a program that seems to run it: ``run.py 2 python x.py``."""
    for at, word in enumerate(arguments):
        starts = is_python(word.text) or os.path.basename(word.text) in launchers.by_name()
        if not word.known or not starts:
            continue
        rest = arguments[at + 1 :]
        script = next((w for w in rest if not w.text.startswith("-")), None)
        if script is None or not script.text.endswith(_SCRIPT_NAMES):
            continue
        if any(is_file(path) for path in setting.candidates(script.text)):
            inner = _inner(setting)
            inner.sure = False
            follow(arguments[at:], inner)
            return


def _inner(setting: Setting) -> Setting:
    """The setting of what a launcher starts."""
    inner = setting.fork()
    inner.depth += 1
    inner.options = frozenset()
    return inner


def _program(word: Word, setting: Setting) -> None:
    """Notes a program that the script calls."""
    if setting.sure and word.known:
        setting.record.programs.append(CommandSource(word.place, word.text))


def _other(words: Sequence[Word], setting: Setting) -> None:
    """A program that is no launcher that we know; it may be one all the same."""
    name = os.path.basename(words[0].text)
    _program(words[0], setting)
    if name in _FETCHING:
        setting.fetched = name
    if name in _ELSEWHERE and any("python" in word.text for word in words[1:]):
        reason = "what it starts is not followed"
        setting.record.unknown(f"`{name}`", reason, words[0].place)
    elif name not in _NOT_WRAPPERS:
        inner = _inner(setting)
        inner.draft = replace(inner.draft, launchers=(*inner.draft.launchers, name))
        _nested(words[1:], inner)


def _launch(
    launcher: Launcher, words: Sequence[Word], setting: Setting, *, module: bool = False
) -> None:
    """A launcher, then what it starts; ``module``: as ``python -m``."""
    if launcher.starts == "services":
        _services(launcher, words, setting)
        return
    name = words[0].text if module else os.path.basename(words[0].text)
    alone = re.search(r"[-.]launch$", name) is not None
    rest = words[1:] if alone else _after_subcommand(launcher, words[1:])
    if rest is None:
        _other_of_launcher(words, setting)
        return
    taken = _operand_checked(launcher, take(launcher, rest), setting)
    inner = _inner(setting)
    if name in _FETCHING:
        setting.fetched = name
    if name not in BUILTINS:
        if launcher.starts in ("command", "make", "script") and not module:
            _program(words[0], setting)
        inner.draft = replace(inner.draft, launchers=(*inner.draft.launchers, name))
    if launcher.starts == "batch" or _is_batch_file(launcher, taken.rest, inner):
        _batch(launcher, words, taken, inner)
        return
    _apply(launcher, name, taken.options, inner)
    if launcher.environments:
        project_environment(launcher.environments, inner)
    if launcher.starts == "script" and not module:
        interpreter = interpreter_of_script(words[0], inner)
        inner.draft = replace(inner.draft, interpreter=interpreter)
    operands, rest = taken.rest[: len(launcher.operands)], taken.rest[len(launcher.operands) :]
    for meaning, value in zip(launcher.operands, operands, strict=False):
        if meaning in MEANINGS:
            inner.draft = MEANINGS[meaning](inner.draft, value)
    _sets(launcher, inner)
    _start(launcher, taken, rest, inner, words[0])


def _after_subcommand(launcher: Launcher, words: Sequence[Word]) -> Sequence[Word] | None:
    """The words after the subcommand; None when it is not one that runs something."""
    if not launcher.subcommands:
        return words
    taken = take(launcher, words)
    if taken.rest and taken.rest[0].text in launcher.groups:
        taken = Taken(taken.options, taken.rest[1:])
    if taken.rest and taken.rest[0].text in launcher.subcommands:
        return taken.rest[1:]
    return None


def _other_of_launcher(words: Sequence[Word], setting: Setting) -> None:
    """``conda install``, ``uv pip install``, ``docker build``."""
    texts = [word.text for word in words[1:3]]
    _program(words[0], setting)
    if texts[:1] == ["pip"]:
        pip_install(words[2:], setting)


def _operand_checked(launcher: Launcher, taken: Taken, setting: Setting) -> Taken:
    """What was taken, where a switch that is not listed had a value after all: ``--new 3 x.py``."""
    if not taken.options or not taken.rest or launcher.starts not in ("script", "command"):
        return taken
    option, value = taken.options[-1]
    listed = option.name in {known.name for known in launcher.options.values()}
    if listed or value.text or launcher.operands or _starts(taken.rest[0], launcher, setting):
        return taken
    for word in taken.rest[1:2]:
        if _starts(word, launcher, setting):
            return Taken(taken.options, taken.rest[1:], taken.switched)
    return taken


def _starts(word: Word, launcher: Launcher, setting: Setting) -> bool:
    """Whether a word looks like what the launcher starts."""
    name = os.path.basename(word.text)
    if launcher.starts == "command" and (
        is_python(name) or name in launchers.by_name() or name in _SHELLS
    ):
        return True
    return any(is_file(path) for path in setting.candidates(word.text))


def _apply(
    launcher: Launcher, name: str, options: Sequence[tuple[Option, Word]], setting: Setting
) -> None:
    """What the options of a launcher say of the job."""
    counted = {"processes", "processes_per_node", "slots", "include", "map_by", "hostfile"}
    if counted & {*launcher.otherwise, *(option.meaning for option, _ in options)}:
        # What an outer launcher starts are then launchers, not the program's processes.
        setting.draft = replace(setting.draft, processes=None, processes_per_node=None)
    for field, number in launcher.otherwise.items():
        if getattr(setting.draft, field) is None:
            setting.draft = replace(setting.draft, **{field: number})  # type: ignore[arg-type]
    for option, value in options:
        setting.draft = with_said(setting.draft, name, option.name, value)
        if option.meaning in MEANINGS:
            setting.draft = MEANINGS[option.meaning](setting.draft, value)
        elif option.meaning in _FILES:
            _FILES[option.meaning](value, setting)
    for option, value in options:
        if option.meaning == "folder_inside":
            _folder_inside(value, setting)


def _folder(value: Word, setting: Setting) -> None:
    setting.enter(value)
    entered = setting.draft.entered[:-1]
    setting.draft = replace(setting.draft, entered=entered, working_folder=value.text)


def _folder_inside(value: Word, setting: Setting) -> None:
    """The working folder in a container: where its mounts show it outside."""
    setting.draft = replace(setting.draft, working_folder=value.text)
    here = setting.here(value.text) if value.known else None
    if here is not None:
        setting.draft = replace(setting.draft, folder=here)
    elif value.text:
        setting.lost = f"{value.text} lies in the container"


def _accelerate_config(value: Word, setting: Setting) -> None:
    """The file of ``accelerate config``; the options of the command line win over it."""
    path = Path(os.path.abspath(setting.draft.folder / value.text))
    try:
        text = read_text(path)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (InputError, yaml.YAMLError, RecursionError) as error:
        may_be = value.known and not (setting.lost or setting.fetched)
        reason = " ".join(str(error).split()) if may_be else "it depends on the run"
        setting.record.unknown(f"`--config_file {value.text}`", reason, value.place)
        return
    script = Script(setting.label(path), text)
    draft = setting.draft
    parts = [node, *(entry(node, part) for part in ("deepspeed_config", "fsdp_config"))]
    for key, told, row in chain.from_iterable(map(scalars, parts)):
        if key == "distributed_type":
            key, told = f"use_{told.lower()}", "true"
        word = Word(told, script.place(row))
        meaning = {"num_processes": "processes", "num_machines": "nodes"}.get(key)
        if f"accelerate --{key}" not in draft.said:
            draft = with_said(draft, "accelerate", f"--{key}", word)
            draft = MEANINGS[meaning](draft, word) if meaning else draft
    setting.draft = draft


def _hostfile(value: Word, setting: Setting) -> None:
    """``host slots=4`` lines of DeepSpeed."""
    path = Path(os.path.abspath(setting.draft.folder / value.text))
    try:
        lines = read_text(path).split("\n") if value.known else []
    except InputError:
        return  # it may be made for the run; what it says is not known
    hosts = [
        found[1] for line in lines if (found := re.match(r"\s*[^#\s]\S*\s+slots=(\d{1,6})", line))
    ]
    if hosts:
        each = int(hosts[0]) if len(set(hosts)) == 1 else None
        setting.draft = replace(setting.draft, nodes=len(hosts), processes_per_node=each)


_FILES: dict[str, Callable[[Word, Setting], None]] = {
    "folder": _folder,
    "accelerate_config": _accelerate_config,
    "hostfile": _hostfile,
    "conda_environment": conda_environment,
}


def _sets(launcher: Launcher, setting: Setting) -> None:
    """The environment variables that a launcher sets."""
    counted = totals(setting.draft)
    values: dict[str, str | None] = {}
    for name, value in launcher.sets.items():
        count = getattr(counted, value) if value in COUNTS else None
        values[name] = None if count is None else str(count)
    said = setting.draft.said
    for option, passed in launcher.passes.items():
        given = {name: said[its] for name, its in passed.items() if option in said and its in said}
        values |= {name: one.text or "true" for name, one in given.items()}
    for name in values:
        setting.variables.pop(name, None)
    setting.draft = replace(setting.draft, environment={**setting.draft.environment, **values})


def _start(
    launcher: Launcher, taken: Taken, rest: Sequence[Word], setting: Setting, head: Word
) -> None:
    """What a launcher starts."""
    said = {option.meaning: value for option, value in taken.options}
    if "manifest" in said:
        _manifest(said["manifest"], setting)
    elif "wrap" in said:
        _text(said["wrap"], setting)
    elif launcher.starts == "nothing":
        return
    elif "entrypoint" in said and said["entrypoint"].text:
        follow([said["entrypoint"], *rest], setting)
    elif launcher.starts == "container":
        _contained(launcher, rest, setting, head)
    elif launcher.starts == "make":
        _make(said.get("makefile"), rest, setting)
    elif not rest:
        return
    elif taken.switched == "module":
        run_module(rest, setting, setting.draft.program)
    elif launcher.starts == "script" and taken.switched != "command":
        _script(rest, setting)
    elif launcher.runs_scripts and rest[0].text.endswith(_SCRIPT_NAMES):
        note_requirements(rest[0], setting)
        run_script_file(rest, setting, "python")
    else:
        follow(rest, setting)


def _script(rest: Sequence[Word], setting: Setting) -> None:
    """A script of a launcher that runs Python; ``kernprof python x.py`` is met as well."""
    if is_python(rest[0].text) and len(rest) > 1:
        _python(rest, setting)
    elif rest[0].text.endswith(".sh") or not rest[0].known:
        follow(rest, setting)
    else:
        run_script_file(rest, setting, setting.draft.program)


def _contained(launcher: Launcher, rest: Sequence[Word], setting: Setting, head: Word) -> None:
    """A command in a container; without one its image says what is run."""
    if not rest:
        reason = "without a command the image says what is run"
        setting.record.unknown(f"`{head.text}`", reason, head.place)
        return
    if not launcher.sees_folder and not setting.draft.working_folder:
        setting.lost = setting.lost or "the image says in which folder it starts"
    follow(rest, setting)


def _notebook(words: Sequence[Word], setting: Setting) -> None:
    """``jupyter nbconvert --execute x.ipynb``."""
    for word in words[1:]:
        if word.text.endswith(".ipynb"):
            reason = "a notebook is not followed; convert it to a script to have it checked"
            setting.record.unknown(f"the notebook {word.text}", reason, word.place)
            return


def _shell(words: Sequence[Word], setting: Setting) -> None:
    """``bash x.sh args``, ``bash -c "..."``."""
    at = 1
    while at < len(words) and words[at].text[:1] in ("-", "+"):
        text = words[at].text
        at += 2 if text in _SHELL_VALUES or (text[-1:] == "o" and text[:2] != "--") else 1
        if text[:2] != "--" and "c" in text and at < len(words):
            inner = _started_with(words[1:at], setting)
            inner.arguments = tuple(words[at + 2 :])
            _text(words[at], inner, words[at + 1].text if at + 1 < len(words) else "")
            return
    if at >= len(words) and setting.input is not None:
        _text(setting.input, _inner(setting))
        return
    if at >= len(words):
        reason = "its commands stand on its standard input"
        setting.record.unknown(f"`{words[0].text}`", reason, words[0].place)
        return
    inner = _started_with(words[1:at], setting)
    _shell_file(words[at:], inner)
    setting.fetched = setting.fetched or inner.fetched


def _started_with(switches: Sequence[Word], setting: Setting) -> Setting:
    """The setting of a shell that is started with options: ``bash -eu``."""
    inner = _inner(setting)
    inner.draft = replace(inner.draft, stops_at_error=False)
    switch([word.text for word in switches], inner)
    return inner


def _text(word: Word, setting: Setting, name: str = "") -> None:
    """A text that a shell is given to run; ``name`` is its ``$0``."""
    text = readable(word)
    if not text and not word.known:
        reason = "its text depends on the run"
        setting.record.unknown("a text that the shell runs", reason, word.place)
        return
    _run_shell(Script(word.place.path, text, word.place.line, name), setting)


def _shell_file(words: Sequence[Word], setting: Setting) -> None:
    """A script of the shell, with its arguments."""
    script = _read_script(words[0], setting)
    if script is None:
        return
    first = script.text.split("\n", 1)[0]
    if first.startswith("#!") and words[0].text[:1] in "./":
        switch(first.split()[1:], setting)
    setting.arguments = tuple(words[1:])
    _run_shell(script, setting)


def _make(named: Word | None, words: Sequence[Word], setting: Setting) -> None:
    """The targets of a Makefile; each line of a recipe is a shell of its own."""
    files = (named.text,) if named else _MAKEFILES
    paths = (path for file in files for path in setting.candidates(file))
    path = next((path for path in paths if is_file(path)), None)
    given = dict(word.text.split("=", 1) for word in words if _ASSIGNMENT.fullmatch(word.text))
    # A number is that of ``-j 8``.
    targets = [w for w in words if not (_ASSIGNMENT.fullmatch(w.text) or w.text.isdigit())]
    if path is None:
        return
    try:
        text = read_text(path)
    except InputError as error:
        reason = str(error).removeprefix(f"{path}: ")
        setting.record.unknown(setting.label(path), reason, SourceLocation(COMMAND))
        return
    for asked in targets or [Word("", SourceLocation(COMMAND))]:
        try:
            lines = list(recipes(text, asked.text, given))
        except KeyError:
            reason = f"{setting.label(path)} has no such target that can be read"
            setting.record.unknown(f"the target {asked.text}", reason, asked.place)
            continue
        for line in lines:
            is_made = line.target != asked.text and is_file(setting.draft.folder / line.target)
            if not is_made:
                script = Script(setting.label(path), line.text, line.row + 1)
                _run_shell(script, _inner(setting))


def _run_shell(script: Script, setting: Setting) -> None:
    """Walks a script as a process of its own: it sees what is exported, and no functions."""
    environment = setting.environment()
    setting.draft = replace(setting.draft, environment=environment)
    setting.variables, setting.exported, setting.functions = {}, set(), {}
    setting.input = None
    run_script(script, setting, follow)


def _read_script(word: Word, setting: Setting) -> Script | None:
    """The text of a script that a command names.

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


def _file(words: Sequence[Word], setting: Setting) -> None:
    """A file that is run itself: Python, the shell, a batch file, a manifest, or a program."""
    word = words[0]
    path = next((p for p in setting.candidates(word.text) if is_file(p)), None)
    suffix = os.path.splitext(word.text)[1]
    if path is not None and "/" in word.text:
        note_not_executable(word, path, setting)
    if path is not None and word.place.path != COMMAND:
        _program(word, setting)
    if path is None and ("/" in word.text and suffix == ""):
        _other(words, setting)
        return
    if suffix in _SCRIPT_NAMES:
        run_script_file(words, setting, "python")
    elif suffix == ".ipynb":
        _notebook([word, *words], setting)
    elif suffix in (".yaml", ".yml"):
        _manifest(word, setting)
    elif (script := _read_script_or_program(words, path, setting)) is not None:
        _by_first_line(words, script, setting)


def _read_script_or_program(
    words: Sequence[Word], path: Path | None, setting: Setting
) -> Script | None:
    """A script's text; a binary program is noted as one."""
    try:
        if path is None:
            raise FileNotFoundError
        with open_file(path) as file:
            head = file.read(4)
    except (OSError, ValueError):
        head = b""  # reading all of it tells why
    if head == _ELF:
        _other(words, setting)
        return None
    return _read_script(words[0], setting)


def _by_first_line(words: Sequence[Word], script: Script, setting: Setting) -> None:
    first = script.text.split("\n", 1)[0]
    if first.startswith("#!") and "python" in first:
        run_script_file(words, setting, "python")
    elif words[0].place.path == COMMAND and (launcher := batch.launcher_of(script.text)):
        submit = replace(words[0], text=launcher.names[0])
        _launch(launcher, [submit, *words], setting)
    elif first.startswith("#!") and "sh" not in first:
        _other(words, setting)
    else:
        _shell_file(words, _inner(setting))


_NOTHING_ASKED: dict[str, Any] = dict.fromkeys(
    ("nodes", "processes", "processes_per_node", "gpus", "gpus_per_node", "cpus", "memory_bytes"),
    None,
) | {"time_limit_s": None, "said": {}}


def _is_batch_file(launcher: Launcher, rest: Sequence[Word], setting: Setting) -> bool:
    """Whether what is submitted is a file with the options of the batch system in it."""
    if not launcher.directives or not rest:
        return False
    path = next((p for p in setting.candidates(rest[0].text) if is_file(p)), None)
    try:
        return path is not None and batch.launcher_of(read_text(path)) is launcher
    except InputError:
        return False


def _batch(launcher: Launcher, words: Sequence[Word], taken: Taken, setting: Setting) -> None:
    """``sbatch options file arguments``: options on the command line win over those of the file."""
    script = _read_script(taken.rest[0], setting) if taken.rest else None
    if script is None and not taken.rest and setting.input is not None:
        place = setting.input.place
        script = Script(place.path, readable(setting.input), place.line)
    options = [*(batch.options_of(script, launcher) if script else ()), *taken.options]
    submitted = setting.draft
    setting.draft = replace(submitted, **_NOTHING_ASKED)  # a batch file may submit others
    _apply(launcher, launcher.names[0], options, setting)
    _sets(launcher, setting)
    told: dict[str, str | None] = dict.fromkeys(launcher.submitted_from, str(submitted.folder))
    if launcher is launchers.by_name()["sbatch"]:
        told |= batch.variables_of(totals(setting.draft), options)
    given = {option.name for option, _ in options}
    if launcher.home_unless and given.isdisjoint(launcher.home_unless):
        setting.lost = AT_HOME
    environment = {**setting.draft.environment, **told}
    setting.draft = replace(setting.draft, environment=environment)
    wrap = next((value for option, value in options if option.meaning == "wrap"), None)
    if wrap is not None:
        _text(wrap, setting)
    elif script is not None:
        setting.arguments = tuple(taken.rest[1:])
        if launcher.flags:
            batch.note_directives(script, launcher, setting)
        _run_shell(replace(script, path=""), setting)
        _note_not_waited(setting)
    else:
        reason = "its batch file stands on its standard input"
        setting.record.unknown(f"`{words[0].text}`", reason, words[0].place)


def _note_not_waited(setting: Setting) -> None:
    """Notes what a batch script leaves in the background, which ends with it."""
    record = setting.record
    for source, started in record.background:
        certain = setting.sure and started == record.started()
        record.problem("background", source.place, source.text, certain=certain)
    record.background.clear()


def _manifest(word: Word, setting: Setting) -> None:
    """A Kubernetes manifest or a compose file: each container's command.

    Raises:
        InputError: it is named on the command line and cannot be read, or is no YAML.
    """
    script = _read_script(word, setting)
    if script is None:
        return
    with _as_yaml(word):
        if compose.is_compose(script.text):
            containers = [*_services_of(script, setting).values()]
        else:
            containers = list(kubernetes.containers_of(script, setting.draft))
    _run_containers(containers, word, script, setting)


@contextmanager
def _as_yaml(word: Word) -> Iterator[None]:
    try:
        yield
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        told = " ".join(str(error).split())
        raise InputError(f"{word.text}: not YAML that can be read: {told}") from error


def _run_containers(
    containers: Sequence[Container],
    word: Word,
    script: Script,
    setting: Setting,
    change: Callable[[Setting], None] = lambda _: None,
) -> None:
    """What containers run, each with a record of its own; ``change``: what a command adds to them."""
    for container in containers:
        inner = _inner(setting)
        record = setting.record
        inner.draft, inner.script = container.draft, script
        inner.record = Record(record.root, record.given, record.command)
        change(inner)
        _in_pod(container, inner)
        record.jobs.extend(inner.record.whole())
        record.unknowns.extend(inner.record.unknowns)
    if containers and not any(container.words or container.text for container in containers):
        reason = "without a command the image says what is run"
        setting.record.unknown(f"the containers of {word.text}", reason, containers[0].place)


def _in_pod(container: Container, setting: Setting) -> None:
    if container.folder is not None:
        _folder_inside(container.folder, setting)
    else:
        setting.lost = "the image says in which folder it starts"
    if container.words:
        follow(container.words, setting)
    elif container.text is not None:
        _text(container.text, setting)


def _services(launcher: Launcher, words: Sequence[Word], setting: Setting) -> None:
    """``docker compose -f FILE up``, ``docker compose run SERVICE COMMAND``.

    Raises:
        InputError: the file or the service is not there.
    """
    before = take(launcher, words[1:])
    if not before.rest or before.rest[0].text not in launcher.subcommands:
        _other_of_launcher(words, setting)
        return
    after = take(launcher, before.rest[1:])
    options = (*before.options, *after.options)
    said = {option.meaning: value for option, value in options}
    file = said.get("manifest") or _usual_file(words[0], setting)
    script = _read_script(file, setting)
    if script is None:
        return
    with _as_yaml(file):
        services = _services_of(script, setting)
    runs = before.rest[0].text == "run"
    asked = after.rest[:1] if runs else after.rest
    for name in asked:
        if name.known and name.text not in services:
            raise InputError(f"{script.label}: has no service {name.text}: {', '.join(services)}")
    chosen = [services[name.text] for name in asked if name.text in services]
    if runs and (len(after.rest) > 1 or "entrypoint" in said):
        start = [word for word in (said.get("entrypoint"),) if word is not None and word.text]
        chosen = [replace(one, words=(*start, *after.rest[1:])) for one in chosen]
    _run_containers(
        chosen if asked else [*services.values()],
        file,
        script,
        setting,
        lambda inner: _apply(launcher, "compose", after.options, inner),
    )


def _usual_file(head: Word, setting: Setting) -> Word:
    """The compose file that is taken when none is named."""
    folder = setting.draft.folder
    found = (name for name in compose.NAMES if is_file(folder / name))
    return replace(head, text=next(found, compose.NAMES[0]))


def _services_of(script: Script, setting: Setting) -> Mapping[str, Container]:
    folder = Path(os.path.abspath(setting.draft.folder / script.path)).parent
    return compose.services_of(script, setting.draft, folder, setting.record.given)
