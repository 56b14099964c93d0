"""A launcher: the effect of its options on the job, and what it starts."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from epochzero import launchers
from epochzero.check.launch.batch import is_batch_file, run_batch
from epochzero.check.launch.builtins import BUILTINS
from epochzero.check.launch.environments import interpreter_of_script, project_environment
from epochzero.check.launch.make import run_make
from epochzero.check.launch.manifests import run_manifest, run_services
from epochzero.check.launch.meanings import MEANINGS
from epochzero.check.launch.model import Word
from epochzero.check.launch.options import (
    ParsedOptions,
    apply_options,
    run_other_subcommand,
    set_variables,
    take,
)
from epochzero.check.launch.python import is_python, note_requirements, run_module, run_script_file
from epochzero.check.launch.setting import Setting
from epochzero.check.launch.shell_commands import SHELLS, run_text
from epochzero.file_access import is_file
from epochzero.launchers import Launcher

FETCHING = frozenset(
    """
    git wget curl tar unzip cp mv rsync scp aws gsutil gcloud az s3cmd rclone hg svn ln install
    make cmake ninja huggingface-cli hf kaggle gdown 7z gunzip patch dvc jupyter jupytext
    """.split()
)
"""Programs that may create a missing file."""
SCRIPT_NAMES = (".py", ".pyw")


def launch(
    launcher: Launcher, words: Sequence[Word], setting: Setting, *, module: bool = False
) -> None:
    """Apply a launcher, then follow what it starts; ``module``: it was started by ``python -m``."""
    if launcher.starts == "services":
        run_services(launcher, words, setting)
        return
    name = words[0].text if module else os.path.basename(words[0].text)
    alone = re.search(r"[-.]launch$", name) is not None
    rest = words[1:] if alone else _after_subcommand(launcher, words[1:])
    if rest is None:
        run_other_subcommand(words, setting)
        return
    taken = _operand_checked(launcher, take(launcher, rest), setting)
    inner = setting.inner()
    if name in FETCHING:
        setting.fetched = name
    if name not in BUILTINS:
        if launcher.starts in ("command", "make", "script") and not module:
            setting.note_program(words[0])
        inner.draft = replace(inner.draft, launchers=(*inner.draft.launchers, name))
    if launcher.starts == "batch" or is_batch_file(launcher, taken.rest, inner):
        run_batch(launcher, words, taken, inner)
        return
    apply_options(launcher, name, taken.options, inner)
    if launcher.environments:
        project_environment(launcher.environments, inner)
    if launcher.starts == "script" and not module:
        interpreter = interpreter_of_script(words[0], inner)
        inner.draft = replace(inner.draft, interpreter=interpreter)
    operands, rest = taken.rest[: len(launcher.operands)], taken.rest[len(launcher.operands) :]
    for meaning, value in zip(launcher.operands, operands, strict=False):
        if meaning in MEANINGS:
            inner.draft = MEANINGS[meaning](inner.draft, value)
    set_variables(launcher, inner)
    if launcher.starts == "script" and len(rest) > 1 and rest[1].text == "--":
        # argparse takes it as part of the script: `torchrun -m train -- --lr 1` passes `--lr 1`.
        rest = (rest[0], *rest[2:])
    _start(launcher, taken, rest, inner, words[0])


def _after_subcommand(launcher: Launcher, words: Sequence[Word]) -> Sequence[Word] | None:
    """The words after the subcommand; None if the subcommand runs nothing."""
    if not launcher.subcommands:
        return words
    taken = take(launcher, words)
    if taken.rest and taken.rest[0].text in launcher.groups:
        taken = ParsedOptions(taken.options, taken.rest[1:])
    if taken.rest and taken.rest[0].text in launcher.subcommands:
        return taken.rest[1:]
    return None


def _operand_checked(launcher: Launcher, taken: ParsedOptions, setting: Setting) -> ParsedOptions:
    """The parsed words, if an unlisted switch turns out to have a value: ``--new 3 x.py``."""
    if not taken.options or not taken.rest or launcher.starts not in ("script", "command"):
        return taken
    option, value = taken.options[-1]
    listed = option.name in {known.name for known in launcher.options.values()}
    if listed or value.text or launcher.operands or _starts(taken.rest[0], launcher, setting):
        return taken
    for word in taken.rest[1:2]:
        if _starts(word, launcher, setting):
            return ParsedOptions(taken.options, taken.rest[1:], taken.switched)
    return taken


def _starts(word: Word, launcher: Launcher, setting: Setting) -> bool:
    """Whether a word looks like what the launcher starts."""
    name = os.path.basename(word.text)
    if launcher.starts == "command" and (
        is_python(name) or name in launchers.by_name() or name in SHELLS
    ):
        return True
    return any(is_file(path) for path in setting.candidates(word.text))


def _start(
    launcher: Launcher, taken: ParsedOptions, rest: Sequence[Word], setting: Setting, head: Word
) -> None:
    """What a launcher starts."""
    option_values = {option.meaning: value for option, value in taken.options}
    if "manifest" in option_values:
        run_manifest(option_values["manifest"], setting)
    elif "wrap" in option_values:
        run_text(option_values["wrap"], setting)
    elif launcher.starts == "nothing":
        return
    elif "entrypoint" in option_values and option_values["entrypoint"].text:
        setting.follow([option_values["entrypoint"], *rest])
    elif launcher.starts == "container":
        _contained(launcher, rest, setting, head)
    elif launcher.starts == "make":
        run_make(option_values.get("makefile"), rest, setting)
    elif not rest:
        return
    elif taken.switched == "module":
        run_module(rest, setting, setting.draft.program)
    elif launcher.starts == "script" and taken.switched != "command":
        _script(rest, setting)
    elif launcher.runs_scripts and rest[0].text.endswith(SCRIPT_NAMES):
        note_requirements(rest[0], setting)
        run_script_file(rest, setting, "python")
    else:
        setting.follow(rest)


def _script(rest: Sequence[Word], setting: Setting) -> None:
    """A script of a launcher that runs Python; ``kernprof python x.py`` is met as well."""
    if (
        (is_python(rest[0].text) and len(rest) > 1)
        or rest[0].text.endswith(".sh")
        or not rest[0].known
    ):
        setting.follow(rest)
    else:
        run_script_file(rest, setting, setting.draft.program)


def _contained(launcher: Launcher, rest: Sequence[Word], setting: Setting, head: Word) -> None:
    """Run a command in a container; without one, its image determines what runs."""
    if not rest:
        reason = "without a command, the image determines what runs"
        setting.record.unknown(f"`{head.text}`", reason, head.place)
        return
    if not launcher.sees_folder and not setting.draft.working_folder:
        setting.lost = setting.lost or "the image determines the working directory"
    setting.follow(rest)
