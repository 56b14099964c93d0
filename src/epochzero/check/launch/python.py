"""A command line of Python itself: its switches, and its script or module."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from epochzero.check.findings import SourceLocation
from epochzero.check.launch.environments import interpreter_of
from epochzero.check.launch.meanings import totals
from epochzero.check.launch.model import COMMAND, CommandSource, Job, Word
from epochzero.check.launch.setting import AT_HOME, Setting, read_text
from epochzero.errors import InputError
from epochzero.file_access import current, is_file, is_folder

MOST_LOOKED_AT = 5000
_PYTHON = re.compile(r"(python|pythonw|pypy)[0-9.]*(\.exe)?")
_METADATA = re.compile(r"^# /// script\s*\n((?:#(?: .*)?\n)+?)# ///\s*$", re.MULTILINE)
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})


def is_python(text: str) -> bool:
    """Whether a program name is that of Python."""
    return _PYTHON.fullmatch(os.path.basename(text)) is not None


def split(words: Sequence[Word]) -> tuple[str, Sequence[Word]]:
    """Determine what Python runs.

    Args:
        words: the words after the name of the interpreter.

    Returns:
        ``module``, ``script``, ``code`` (``-c``), ``input`` (standard input) or ``nothing`` (its version), as listed by
        ``python --help``; and the words from the script's or module's name on.
    """
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text
        at += 1
        if text == "-":
            return "input", words[at:]
        if text in ("--version", "--help", "--help-env", "--help-xoptions", "--help-all"):
            return "nothing", ()
        if text == "--check-hash-based-pycs":
            at += 1
        if not text.startswith("-"):
            return "script", words[at - 1 :]
        found = re.fullmatch(r"-[^-cmWXVh?]*([cmWXVh?])(.*)", text, re.DOTALL)
        if found is None:
            continue
        switch, attached = found.groups()
        if switch in "Vh?":
            return "nothing", ()
        if switch in "WX":
            at += not attached
            continue
        rest = [replace(word, text=attached), *words[at:]] if attached else words[at:]
        return ("module" if switch == "m" else "code") if rest else "nothing", rest
    return "input", ()


def run_script_file(words: Sequence[Word], setting: Setting, program: str) -> None:
    """Record the job of a Python script with its arguments.

    Args:
        words: the script's name, then its arguments.
        setting: context of the command.
        program: the interpreter as written.

    Raises:
        InputError: the script is named on the command line itself and cannot be run.
    """
    word = words[0]
    if not word.known or not word.text:
        reason = "which script is run depends on the run"
        setting.record.unknown(f"`{word.text}`", reason, word.place)
        return
    path = _find_script(word, setting)
    if path is not None:
        _emit(
            replace(_job(words, setting, program), script=path, fault=_fault(path, word)), setting
        )
        return
    path = Path(os.path.abspath(setting.draft.folder / word.text))
    reason = setting.lost or (
        f"`{setting.fetched}` may create it before it is run" if setting.fetched else ""
    )
    if os.path.isabs(word.text) and word.place.path != COMMAND:
        reason = reason or "it is not on this machine"
    if reason or (setting.draft.container and os.path.isabs(word.text)):
        reason = reason or "it is in the container"
        setting.record.unknown(f"the script {word.text}", reason, word.place)
        return
    fault = f"{word.text} {_why_not(path)}" + _hint(path, setting)
    _emit(replace(_job(words, setting, program), script=path, fault=fault), setting)


def note_requirements(word: Word, setting: Setting) -> None:
    """Record the distributions that a script requires by its metadata (PEP 723) and that are installed for it."""
    path = _find_script(word, setting) if word.known else None
    try:
        found = _METADATA.search(read_text(path)) if path is not None else None
        text = "\n".join(line[2:] for line in found[1].splitlines()) if found else ""
        listed = tomllib.loads(text).get("dependencies", [])
    except (InputError, tomllib.TOMLDecodeError):
        return  # errors in it are reported where the script is run
    names = tuple(str(element) for element in listed if isinstance(listed, list))
    setting.draft = setting.draft.with_script(
        requires=(*setting.draft.launch_script.requires, *names)
    )


def run_module(words: Sequence[Word], setting: Setting, program: str) -> None:
    """Record the job of ``python -m name``; its script is None if the module is outside of the directory.

    Args:
        words: the module's name, then its arguments.
        setting: context of the command.
        program: the interpreter as written.
    """
    word = words[0]
    if not word.known:
        reason = "which module is run depends on the run"
        setting.record.unknown(f"`python -m {word.text}`", reason, word.place)
        return
    job = replace(_job(words, setting, program), module=word.text)
    parts = word.text.split(".")
    for folder in _import_folders(setting):
        path = folder.joinpath(*parts)
        for script in (path.with_name(path.name + ".py"), path / "__main__.py"):
            if is_file(script):
                _emit(replace(job, script=script), setting)
                return
    top = setting.draft.folder / parts[0]
    fault = ""
    if len(parts) > 1 and is_file(top / "__init__.py") and not setting.fetched:
        missing = Path(os.path.abspath(setting.draft.folder.joinpath(*parts))).with_suffix(".py")
        fault = f"{word.text}: no module of that name" + _hint(missing, setting)
    _emit(replace(job, fault=fault), setting)


def run_code(code: Word, words: Sequence[Word], setting: Setting, program: str) -> None:
    """Record the job of ``python -c "..."`` or ``python - <<EOF``, whose program is part of the command.

    Args:
        code: the program.
        words: the word in place of its name, then its arguments.
        setting: context of the command.
        program: the interpreter as written.
    """
    if not code.known:
        setting.record.unknown(f"`{program}`", "what its program is depends on the run", code.place)
        return
    job = _job(words, setting, program)
    _emit(replace(job, code=CommandSource(code.place, code.text)), setting)


def _import_folders(setting: Setting) -> list[Path]:
    search_path = setting.environment().get("PYTHONPATH") or ""
    folders = [setting.draft.folder / entry for entry in search_path.split(os.pathsep) if entry]
    return [setting.draft.folder, *folders]


def _job(words: Sequence[Word], setting: Setting, program: str) -> Job:
    """The job of a program and its arguments, without its file."""
    arguments = words[1:]
    return replace(
        setting.draft,
        argv=tuple(word.text for word in arguments),
        program=program,
        interpreter=interpreter_of(program, setting),
        environment=setting.environment(),
        argument_sources={**setting.exported_at(), **setting.draft.argument_sources},
        at=words[0].place,
        argv_at=tuple(word.place for word in arguments),
        unsure=frozenset(at for at, word in enumerate(arguments) if not word.known),
        complete=not any(word.many for word in arguments),
        certain=setting.sure,
        command=setting.record.command,
        root=setting.record.root,
    )


def _emit(job: Job, setting: Setting) -> None:
    """Add a job; problems on the command line itself are raised at once."""
    if job.fault and job.at.path == COMMAND:
        raise InputError(job.fault)
    record = setting.record
    job = totals(job).with_script(waits=record.waits)
    alike = [
        earlier.launch_script
        for earlier in record.jobs
        if earlier
        == job.with_script(
            in_background=earlier.launch_script.in_background, waits=earlier.launch_script.waits
        )
    ]
    # Once is enough, except for two that run at the same time.
    if not alike or [(each.in_background, each.waits) for each in alike] == [(True, record.waits)]:
        record.jobs.append(job)


def _find_script(word: Word, setting: Setting) -> Path | None:
    """The path of a script on this machine; for a script in a container or an unknown directory, its copy."""
    for path in setting.candidates(word.text):
        found = _entry(path)
        if found is not None and not (setting.lost and not os.path.isabs(word.text)):
            return found
    if not (setting.lost or setting.draft.container or os.path.isabs(word.text)):
        return None
    if os.path.isabs(word.text) and not setting.draft.container and word.place.path == COMMAND:
        return None
    parts = Path(word.text).parts
    for skip in range(1 if os.path.isabs(word.text) else 0, len(parts)):
        for base in dict.fromkeys((setting.draft.folder, setting.record.root)):
            found = _entry(Path(os.path.abspath(base.joinpath(*parts[skip:]))))
            if found is not None:
                reason = setting.lost or "it is not visible on this machine"
                if setting.lost == AT_HOME and not os.path.isabs(word.text):
                    _note_at_home(word, setting)
                search_path = f"{reason}; {setting.label(found)} is assumed to be its copy"
                setting.record.unknown(f"the script {word.text}", search_path, word.place)
                return found
    return None


def _note_at_home(word: Word, setting: Setting) -> None:
    """Record a script that is expected in the home directory and is missing there, as far as is known."""
    home = setting.value("HOME")
    folder = home.text if isinstance(home, Word) and home.known else ""
    if not folder or not is_file(Path(folder, word.text)):
        certain = setting.sure and bool(folder)
        setting.record.problem("home", word.place, word.text, certain=certain)


def _entry(path: Path) -> Path | None:
    """The file that runs for a path: for a directory its ``__main__.py``."""
    if is_file(path):
        return path
    return path / "__main__.py" if is_file(path / "__main__.py") else None


def _why_not(path: Path) -> str:
    """Why a path is not a file."""
    try:
        current().resolve(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except (OSError, ValueError) as error:
        return f"cannot be read: {error.strerror if isinstance(error, OSError) else error}"
    return "is a directory without __main__.py" if is_folder(path) else "is not a file"


def _fault(path: Path, word: Word) -> str:
    """Why a file is not a Python script; empty if it may be one."""
    try:
        text = read_text(path)
    except InputError as error:
        return str(error).replace(str(path), word.text, 1)
    first = text.split("\n", 1)[0]
    if path.suffix == ".ipynb":
        return f"{word.text} is a notebook, which Python does not run; convert it, or use nbconvert"
    if path.suffix in (".sh", ".slurm", ".sbatch") or re.match(r"#!.*\b(ba|z|da|k)?sh\b", first):
        return f"{word.text} is a shell script, but Python is to run it"
    return ""


def nearest(path: Path, root: Path) -> Path | None:
    """The file that was probably meant by a missing path: the same name elsewhere, or a similar name; None if there is none.

    Args:
        path: absolute path.
        root: directory to search.
    """
    files = [file for file in _files(root) if file != path]
    for file in files:
        if file.name == path.name:
            return file
    suffix = path.suffix or ".py"
    names = {str(file): file for file in files if file.suffix == suffix}
    near = difflib.get_close_matches(str(path), list(names), n=1, cutoff=0.8)
    if near:
        return names[near[0]]
    by_name = {file.stem: file for file in reversed(list(names.values()))}
    near = difflib.get_close_matches(path.stem, list(by_name), n=1, cutoff=0.6)
    return by_name[near[0]] if near else None


def _files(root: Path) -> list[Path]:
    """Yield some thousand files below a directory, nearest first, without following links to directories."""
    found: list[Path] = []
    looked = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f[0] != "." and f not in _SKIPPED)
        found.extend(Path(folder, name) for name in sorted(names))
        looked += len(names) + len(folders)
        if looked > MOST_LOOKED_AT:
            break
    return sorted(found, key=lambda file: (len(file.parts), file))


def _hint(path: Path, setting: Setting) -> str:
    near = nearest(path, setting.record.root)
    folder = setting.label(path.parent)
    where = "" if folder in (".", "") else f" in {folder}"
    return f"{where}; did you mean {setting.label(near)}?" if near else where


def pip_install(words: Sequence[Word], setting: Setting) -> bool:
    """Record ``install ...`` of pip; return False for other subcommands.

    Args:
        words: the words after ``pip``.
        setting: context of the command.
    """
    if not words or words[0].text != "install":
        return False
    place: SourceLocation = words[0].place
    source = CommandSource(place, " ".join(word.text for word in words[1:]))
    setting.draft = setting.draft.with_script(
        installs=(*setting.draft.launch_script.installs, source)
    )
    return True
