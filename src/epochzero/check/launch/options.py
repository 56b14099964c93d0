"""The options of a launcher: separated from what it starts, and applied to the job."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import yaml

from epochzero.check.launch.environments import conda_environment
from epochzero.check.launch.meanings import MEANINGS, totals, with_source
from epochzero.check.launch.model import Word
from epochzero.check.launch.nodes import entry, scalars
from epochzero.check.launch.python import pip_install
from epochzero.check.launch.setting import Script, Setting, read_text
from epochzero.errors import InputError
from epochzero.launchers import COUNTS, Launcher, Option


@dataclass(frozen=True, slots=True)
class ParsedOptions:
    """The parsed words of a launcher.

    Attributes:
        options: options with their values, and switches with an empty one, in order.
        rest: the words from the first operand on.
        switched: the effects of switches on what is started.
    """

    options: tuple[tuple[Option, Word], ...]
    rest: tuple[Word, ...]
    switched: str = ""


def take(launcher: Launcher, words: Sequence[Word]) -> ParsedOptions:
    """Parse the options before the first operand.

    Args:
        launcher: the launcher.
        words: the words after its name, and after its subcommand.
    """
    options: list[tuple[Option, Word]] = []
    switched, at = "", 0
    while at < len(words):
        word = words[at]
        text = word.text
        at += 1
        if text == "--":
            break
        if not text.startswith("-") or text == "-":
            at -= 1
            break
        name, equals, value = text.partition("=")
        option = launcher.options.get(name)
        if name in launcher.switches:
            switched = launcher.switches[name]
        elif name in launcher.pairs:
            at += 2
        elif equals or (option and option.meaning == "optional"):
            options.append((option or Option(name, ""), _part(word, value)))
        elif option and at < len(words):
            options.append((option, words[at]))
            at += 1
        else:
            options.append(_attached(launcher, word) or (Option(name, ""), _part(word, "")))
    return ParsedOptions(tuple(options), tuple(words[at:]), switched)


def _attached(launcher: Launcher, word: Word) -> tuple[Option, Word] | None:
    """A short option and its value in one word: ``-N2``."""
    option = launcher.options.get(word.text[:2])
    if option is None or word.text.startswith("--") or len(word.text) < 3:
        return None
    return option, _part(word, word.text[2:])


def _part(word: Word, text: str) -> Word:
    return Word(text, word.place, word.known)


def apply_options(
    launcher: Launcher, name: str, options: Sequence[tuple[Option, Word]], setting: Setting
) -> None:
    """Apply the options of a launcher to the job."""
    counted = {"processes", "processes_per_node", "slots", "include", "map_by", "hostfile"}
    if counted & {*launcher.otherwise, *(option.meaning for option, _ in options)}:
        # An outer launcher then starts launchers, not the processes of the program.
        setting.draft = setting.draft.with_allocation(processes=None, processes_per_node=None)
    for field, number in launcher.otherwise.items():
        if getattr(setting.draft.allocation, field) is None:
            setting.draft = setting.draft.with_allocation(**{field: number})
    for option, value in options:
        setting.draft = with_source(setting.draft, name, option.name, value)
        if option.meaning in MEANINGS:
            setting.draft = MEANINGS[option.meaning](setting.draft, value)
        elif option.meaning in _FILES:
            _FILES[option.meaning](value, setting)
    for option, value in options:
        if option.meaning == "folder_inside":
            enter_inside(value, setting)


def _folder(value: Word, setting: Setting) -> None:
    setting.enter(value)
    entered = setting.draft.launch_script.entered[:-1]
    draft = replace(setting.draft, working_folder=value.text)
    setting.draft = draft.with_script(entered=entered)


def enter_inside(value: Word, setting: Setting) -> None:
    """Apply the working directory in a container: the host directory that is mounted there."""
    setting.draft = replace(setting.draft, working_folder=value.text)
    here = setting.here(value.text) if value.known else None
    if here is not None:
        setting.draft = replace(setting.draft, folder=here)
    elif value.text:
        setting.lost = f"{value.text} is in the container"


def _accelerate_config(value: Word, setting: Setting) -> None:
    """The file of ``accelerate config``; the options of the command line override it."""
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
    for key, setting_text, row in chain.from_iterable(map(scalars, parts)):
        if key == "distributed_type":
            key, setting_text = f"use_{setting_text.lower()}", "true"
        word = Word(setting_text, script.place(row))
        meaning = {"num_processes": "processes", "num_machines": "nodes"}.get(key)
        if f"accelerate --{key}" not in draft.argument_sources:
            draft = with_source(draft, "accelerate", f"--{key}", word)
            draft = MEANINGS[meaning](draft, word) if meaning else draft
    setting.draft = draft


def _hostfile(value: Word, setting: Setting) -> None:
    """``host slots=4`` lines of DeepSpeed."""
    path = Path(os.path.abspath(setting.draft.folder / value.text))
    try:
        lines = read_text(path).split("\n") if value.known else []
    except InputError:
        return  # it may be created for the run; its content is unknown
    hosts = [
        found[1] for line in lines if (found := re.match(r"\s*[^#\s]\S*\s+slots=(\d{1,6})", line))
    ]
    if hosts:
        each = int(hosts[0]) if len(set(hosts)) == 1 else None
        setting.draft = setting.draft.with_allocation(nodes=len(hosts), processes_per_node=each)


_FILES: dict[str, Callable[[Word, Setting], None]] = {
    "folder": _folder,
    "accelerate_config": _accelerate_config,
    "hostfile": _hostfile,
    "conda_environment": conda_environment,
}


def set_variables(launcher: Launcher, setting: Setting) -> None:
    """The environment variables that a launcher sets."""
    counted = totals(setting.draft)
    values: dict[str, str | None] = {}
    for name, value in launcher.sets.items():
        count = getattr(counted.allocation, value) if value in COUNTS else None
        values[name] = None if count is None else str(count)
    sources = setting.draft.argument_sources
    for option, passed in launcher.passes.items():
        given = {
            name: sources[its]
            for name, its in passed.items()
            if option in sources and its in sources
        }
        values |= {name: source.text or "true" for name, source in given.items()}
    for name in values:
        setting.variables.pop(name, None)
    setting.draft = replace(setting.draft, environment={**setting.draft.environment, **values})


def run_other_subcommand(words: Sequence[Word], setting: Setting) -> None:
    """``conda install``, ``uv pip install``, ``docker build``."""
    texts = [word.text for word in words[1:3]]
    setting.note_program(words[0])
    if texts[:1] == ["pip"]:
        pip_install(words[2:], setting)
