"""Everything that a caller can ask of a check, as one immutable value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.check.data import DataSet
from epochzero.check.dryrun.contain.model import Limits
from epochzero.check.dryrun.memory.history import PastPeak
from epochzero.check.target.model import Target

if TYPE_CHECKING:
    from epochzero.check.dryrun.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """A check of a command line against a platform; `epochzero.check` documents the fields.

    Attributes:
        command: the command line, by words.
        target: the platform, or the name or path of its description; None for that of the settings, else this
            machine.
        folder: the directory in which the command would run.
        select: ids of the rules to run; when empty those of the settings, else all.
        ignore: ids of the rules to skip, in addition to those of the settings.
        environment: variables of the shell in which the command would run; None when they are not known.
        data: data sets to compare with their profiles; when empty those of the settings.
        dry: limits of the dry run; None for no dry run.
        synthesize: generate missing data in the dry run.
        fit: the option of the job whose largest value that fits the GPU is wanted; empty for none.
        layout: how the job would be divided over GPUs, such as ``fsdp=8,tensor=2``, if the memory of a rank is wanted.
        history: GPU memory that past runs took.
        ask_scheduler: ask the scheduler whether it accepts the submission, which executes its program.
        on_record: called with each record of a dry run, from more than one thread.
    """

    command: tuple[str, ...]
    target: Target | str | Path | None = None
    folder: Path = Path(".")
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    data: tuple[DataSet, ...] = ()
    dry: Limits | None = None
    synthesize: bool = False
    fit: str = ""
    layout: str = ""
    history: tuple[PastPeak, ...] = ()
    ask_scheduler: bool = False
    on_record: Callable[[Record], None] = lambda _: None
