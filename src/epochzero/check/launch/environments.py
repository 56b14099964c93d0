"""The Python of this machine that runs a job: found by the shell's rules and by activated environments; nothing is run.

Sources: venv (PEP 405), conda's and micromamba's ``activate``, pyenv's shims, the project environments of uv, Poetry, PDM
and pixi.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from epochzero.check.launch.model import Word
from epochzero.check.launch.setting import Setting
from epochzero.file_access import open_file

LARGEST_TEXT_BYTES = 1 << 20

_BRINGS_PYTHON = re.compile(r"python|conda|mamba|torch|tensorflow|jax|miniforge", re.IGNORECASE)
_FIRST_LINE = re.compile(rb"#!\s*(\S*/python[\d.]*)\s*$", re.MULTILINE)
_CONDA_FOLDERS = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")
_MAKES = re.compile(r"venv\s|virtualenv|\bcreate\b|\buv\b|poetry|\bpdm\b|\brye\b|\bmake\b")
"""Commands that may create an environment: ``python -m venv``, ``conda create``, ``uv sync``."""
_OF_THE_SYSTEM = ("/usr/bin", "/bin", "/usr/local/bin")
_IN_PROJECT = (".venv", "venv", ".pixi/envs/default")
_LOADING = frozenset({"load", "add", "swap", "switch", "restore", "use", "shell"})


def interpreter_of(program: str, setting: Setting) -> Path | None:
    """Return the file of a Python by its name; None if unknown.

    Args:
        program: as written: ``python``, ``.venv/bin/python``.
        setting: context of the command.
    """
    if setting.draft.container:
        return None
    if setting.draft.interpreter is not None:
        return setting.draft.interpreter
    found = _program(program, setting)
    if found is not None and _variable("PRE_COMMIT", setting) and found.is_relative_to(sys.prefix):
        found = _outside_of_hook(program, setting)
    return _behind_shim(found, setting) if found else None


def _outside_of_hook(program: str, setting: Setting) -> Path | None:
    """The project's Python, if pre-commit has put the environment of its hook first on ``PATH``."""
    folder = setting.draft.folder
    for above in (folder, *folder.parents):
        for place in _IN_PROJECT:
            if os.path.isfile(found := above / place / "bin" / program):
                return found
    for other in _search_path(setting) or ():
        found = other / program
        is_user = not found.is_relative_to(sys.prefix) and not is_of_the_system(found)
        if is_user and os.access(found, os.X_OK):
            return found
    return None


def is_of_the_system(interpreter: Path) -> bool:
    """Whether a Python belongs to the system of one machine, not to an environment."""
    return str(interpreter.parent) in _OF_THE_SYSTEM


def interpreter_of_script(program: Word, setting: Setting) -> Path | None:
    """The Python that runs a launcher script such as ``torchrun``, by its first line."""
    found = _program(program.text, setting) if program.known else None
    if found is None:
        return None
    try:
        with open_file(found) as file:
            first = _FIRST_LINE.match(file.readline(4096))
    except OSError:
        return None
    if first is not None:
        return Path(os.fsdecode(first[1]))
    beside = found.with_name(
        "python"
    )  # if the path is too long for the first line, it is elsewhere
    return _behind_shim(beside, setting) if os.path.isfile(beside) else None


def activate(words: Sequence[Word], setting: Setting) -> None:
    """Apply ``source venv/bin/activate``, ``conda activate e`` and similar commands."""
    texts = [word.text for word in words]
    if texts[0] == "deactivate" or texts[1:2] == ["deactivate"]:
        _enter(setting, "")
    elif not all(word.known for word in words):
        _enter(setting, None)
    elif texts[0] in ("source", "."):
        if os.path.basename(texts[1]) == "activate":
            prefix = Path(os.path.abspath(setting.draft.folder / texts[1])).parent.parent
            named = os.path.isdir(prefix / "conda-meta") and texts[2:3]
            if not os.path.isfile(prefix / "bin" / "activate"):
                _note_missing(words[1], setting)
            _enter(setting, _conda(texts[2], setting) if named else _existing(prefix))
    elif texts[1:2] == ["activate"] and texts[0] != "pyenv":
        names = [text for text in texts[2:] if not text.startswith("-")]
        _enter(setting, _conda(names[0] if names else "base", setting))
    elif _loads_python(texts):
        _enter(setting, None)


def _note_missing(word: Word, setting: Setting) -> None:
    """Record a missing environment, unless the script may have created it."""
    made = setting.fetched or _MAKES.search(setting.script.text)
    if not (made or setting.lost or setting.draft.container):
        certain = setting.sure and setting.draft.launch_script.stops_at_error
        setting.record.problem("environment", word.place, word.text, certain=certain)


def _loads_python(texts: Sequence[str]) -> bool:
    """Whether ``module load python/3.11`` or a similar command may provide another Python."""
    loads = texts[0] == "ml" or (texts[1:2] and texts[1] in _LOADING)
    named = texts[0] in ("pyenv", "spack") or _BRINGS_PYTHON.search(" ".join(texts[1:]))
    return bool(loads and named)


def conda_environment(value: Word, setting: Setting) -> None:
    """``conda run -n name``, ``conda run -p path``."""
    _enter(setting, _conda(value.text, setting) if value.known else None)


def project_environment(places: Sequence[str], setting: Setting) -> None:
    """Enter the environment that a tool creates in the project, in this directory or one above it.

    Args:
        places: paths at which the tool creates it: ``.venv``.
        setting: context in which the tool is called.
    """
    folder = setting.draft.folder
    for above in (folder, *folder.parents):
        for place in places:
            if not setting.lost and os.path.isfile(above / place / "bin" / "python"):
                _enter(setting, str(above / place))
                return
    _enter(setting, None)


def _enter(setting: Setting, prefix: str | None) -> None:
    setting.draft = replace(setting.draft, prefix=prefix, interpreter=None)


def _existing(prefix: Path) -> str | None:
    return str(prefix) if os.path.isfile(prefix / "bin" / "python") else None


def _conda(name: str, setting: Setting) -> str | None:
    """The directory of a conda environment; None if it is not found."""
    if "/" in name:
        return _existing(Path(os.path.abspath(setting.draft.folder / name)))
    listed = Path(_variable("HOME", setting), ".conda/environments.txt")
    known = [Path(line) for line in _text(listed).splitlines() if line]
    named = [folder for folder in known if folder.name == name]
    for root in _conda_roots(setting):
        named.append(root if name == "base" else root / "envs" / name)
    return next((found for folder in named if (found := _existing(folder))), None)


def _conda_roots(setting: Setting) -> Iterator[Path]:
    """Yield the directories in which conda may be installed, most likely first."""
    for variable in ("CONDA_EXE", "MAMBA_EXE"):
        if text := _variable(variable, setting):
            yield Path(text).parent.parent
    if text := _variable("MAMBA_ROOT_PREFIX", setting):
        yield Path(text)
    for folder in _search_path(setting) or ():
        if os.path.isfile(folder / "conda"):
            yield folder.parent
    for home in (_variable("HOME", setting), "/opt"):
        for name in ("conda", *_CONDA_FOLDERS) if home else ():
            yield Path(home, name)


def _program(name: str, setting: Setting) -> Path | None:
    """The file of a program: in the active environment, else the first on the path."""
    if "/" in name:
        return next((path for path in setting.candidates(name) if os.path.isfile(path)), None)
    if setting.draft.prefix is None:
        return None
    inside = Path(setting.draft.prefix, "bin", name) if setting.draft.prefix else None
    if inside is not None and os.path.isfile(inside):
        return inside
    for folder in _search_path(setting) or ():
        if os.path.isfile(folder / name) and os.access(folder / name, os.X_OK):
            return folder / name
    return None


def _search_path(setting: Setting) -> list[Path] | None:
    """The directories of ``PATH``; None if unknown."""
    value = setting.value("PATH")
    if not isinstance(value, Word) or not value.known:
        return None
    return [setting.draft.folder / folder for folder in value.text.split(":") if folder]


def _variable(name: str, setting: Setting) -> str:
    value = setting.value(name)
    return value.text if isinstance(value, Word) and value.known else ""


def _behind_shim(program: Path, setting: Setting) -> Path | None:
    """The interpreter that a pyenv shim would start; any other program itself."""
    root = program.parent.parent
    if program.parent.name != "shims" or not os.path.isdir(root / "versions"):
        return program
    folder = setting.draft.folder
    files = [above / ".python-version" for above in (folder, *folder.parents)]
    version = _variable("PYENV_VERSION", setting) or _first_word([*files, root / "version"])
    found = root / "versions" / version / "bin" / program.name
    return found if version and os.path.isfile(found) else None


def _first_word(files: Sequence[Path]) -> str:
    """The first word of the first file that exists."""
    for file in files:
        if words := _text(file).split():
            return words[0]
    return ""


def _text(file: Path) -> str:
    """The text of a short file; empty if it cannot be read."""
    try:
        with open_file(file) as stream:
            return stream.read(LARGEST_TEXT_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
