"""Makefiles: the recipes that a target runs, as lines of the shell.

Source: GNU make's manual, "Writing Rules", "How to Use Variables", "Writing Recipes in Rules". Conditions, functions,
patterns and included files are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from epochzero.check.findings import SourceLocation
from epochzero.check.launch.model import COMMAND, Word
from epochzero.check.launch.setting import Script, Setting, read_text
from epochzero.check.launch.shell_commands import run_shell_script
from epochzero.errors import InputError
from epochzero.file_access import is_file

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_MOST_NESTED = 20
_VARIABLE = re.compile(r"(?:export\s+)?([\w.-]+)\s*(::?=|\?=|\+=|=)\s*(.*)")
_RULE = re.compile(r"([^\s:=#][^:=#]*?)\s*::?(?!=)\s*([^;=]*)$")
_REFERENCE = re.compile(r"\$(?:\((\w[\w.-]*)\)|\{(\w[\w.-]*)\}|(@)|(\$))")


@dataclass(frozen=True, slots=True)
class RecipeLine:
    """A line of a recipe, with its variables replaced.

    Attributes:
        target: target of the recipe.
        row: its first row, from 0.
        text: shell text; parts that are not followed stay as written.
    """

    target: str
    row: int
    text: str


@dataclass(slots=True)
class _Makefile:
    """What is known of a Makefile.

    Attributes:
        variables: as written.
        needs: the prerequisites of each target.
        lines: the recipe lines of each target, with their rows from 0.
        first: the default target.
    """

    variables: dict[str, str] = field(default_factory=dict)
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lines: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    first: str = ""


def _read(text: str) -> _Makefile:
    made = _Makefile()
    targets: list[str] = []
    joined, row = "", 0
    for number, line in enumerate(text.split("\n")):
        row = row if joined else number
        joined += line
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        whole, joined = joined, ""
        if whole.startswith("\t"):
            for target in targets:
                made.lines[target].append((row, whole.strip()))
        elif found := _VARIABLE.fullmatch(whole):
            _assign(made, *found.groups())
        elif found := _RULE.fullmatch(whole.partition("#")[0].rstrip()):
            targets = found[1].split()
            for target in targets:
                made.lines.setdefault(target, [])
                made.needs[target] = (*made.needs.get(target, ()), *found[2].split())
                if not made.first and not target.startswith("."):
                    made.first = target
    return made


def _assign(made: _Makefile, name: str, sign: str, value: str) -> None:
    value = value.partition(" #")[0].strip()
    if sign == "+=":
        value = f"{made.variables.get(name, '')} {value}".strip()
    if sign != "?=" or name not in made.variables:
        made.variables[name] = value


def recipes(text: str, target: str, given: Mapping[str, str]) -> Iterator[RecipeLine]:
    """Return the lines that make runs for a target, those of its prerequisites first.

    Args:
        text: of the Makefile.
        target: empty for the default target.
        given: variables of the command line, which override those of the file.

    Raises:
        KeyError: the target does not exist.
    """
    made = _read(text)
    made.variables.update(given)
    target = target or made.first
    if target not in made.lines:
        raise KeyError(target)
    yield from _of_target(made, target, set(), 0)


def _of_target(made: _Makefile, target: str, done: set[str], depth: int) -> Iterator[RecipeLine]:
    if target in done or depth > _MOST_NESTED:
        return
    done.add(target)
    for need in made.needs.get(target, ()):
        yield from _of_target(made, need, done, depth + 1)
    for row, line in made.lines.get(target, ()):
        yield RecipeLine(target, row, _expanded(line.lstrip("@-+ "), made, target, 0))


def _expanded(text: str, made: _Makefile, target: str, depth: int) -> str:
    """Replace the variables of a text; the shell's own ``$$`` is replaced last."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if found[3] or found[4]:
            return target if found[3] else "$"
        if name in made.variables and depth < _MOST_NESTED:
            return _expanded(made.variables[name], made, target, depth + 1)
        return f"${{{name}}}"

    return _REFERENCE.sub(value, text)


def run_make(named: Word | None, words: Sequence[Word], setting: Setting) -> None:
    """Run the targets of a Makefile; each line of a recipe is a shell of its own."""
    files = (named.text,) if named else _MAKEFILES
    paths = (path for file in files for path in setting.candidates(file))
    path = next((path for path in paths if is_file(path)), None)
    given = dict(word.text.split("=", 1) for word in words if _ASSIGNMENT.fullmatch(word.text))
    # A number is the value of ``-j 8``.
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
            reason = f"{setting.label(path)} has no readable target of this name"
            setting.record.unknown(f"the target {asked.text}", reason, asked.place)
            continue
        for line in lines:
            is_made = line.target != asked.text and is_file(setting.draft.folder / line.target)
            if not is_made:
                script = Script(setting.label(path), line.text, line.row + 1)
                run_shell_script(script, setting.inner())
