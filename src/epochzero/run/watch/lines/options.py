"""Which option of the command line gave a value, where the source has only the option's default."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from epochzero.run.watch.lines.program import last_name, parsed
from epochzero.run.watch.model import SourceLine, TrainingFinding, WatchResult

MAKERS = ("add_argument", "option", "Option")
"""What makes an option: of argparse, click and typer."""


def with_options(watched: WatchResult, arguments: Sequence[str]) -> WatchResult:
    """The verdict, its findings with the options that set their values.

    Args:
        watched: the verdict.
        arguments: words of the job's command line behind its program.
    """
    if not arguments:
        return watched
    return replace(
        watched,
        root=_with_option(watched.root, arguments) if watched.root is not None else None,
        symptoms=tuple(_with_option(symptom, arguments) for symptom in watched.symptoms),
        others=tuple(_with_option(other, arguments) for other in watched.others),
    )


def _with_option(finding: TrainingFinding, arguments: Sequence[str]) -> TrainingFinding:
    given = option_given(finding.place, arguments) if finding.place is not None else ""
    return replace(finding, option=given) if given else finding


def option_given(place: SourceLine, arguments: Sequence[str]) -> str:
    """The option that a line makes, as it was given: ``--lr 10``; empty where the line makes none, or it was not."""
    program = parsed(place.path)
    calls = program.calls(place.line) if program is not None else []
    for call in calls:
        names = _names(call) if last_name(call.func) in MAKERS else []
        # The last counts, as it does for the program.
        for number in reversed(range(len(arguments))):
            if arguments[number] in names:
                return " ".join((arguments[number], *_values(arguments[number + 1 :])))
    return ""


def _names(call: ast.Call) -> list[str]:
    """Such as ``--lr`` and ``-l``; that of click may be one half of ``--clip/--no-clip``."""
    words = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    names = (part for word in words if isinstance(word, str) for part in word.split("/"))
    return [name for name in names if name.startswith("-")]


def _values(words: Sequence[str]) -> Sequence[str]:
    """What follows an option, up to the next one: a word, as a flag has none and a list is rare."""
    first = words[:1]
    return first if first and not _is_option(first[0]) else ()


def _is_option(word: str) -> bool:
    return word.startswith("-") and word[1:2] not in "0123456789."
