"""The options of a launcher, taken apart from what it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from epochzero.check.job.model import Word
from epochzero.launchers import Launcher, Option


@dataclass(frozen=True, slots=True)
class Taken:
    """The words of a launcher, taken apart.

    Attributes:
        options: that have a value, and switches with an empty one, in their order.
        rest: the words from the first operand on.
        switched: what its switches change of what is started.
    """

    options: tuple[tuple[Option, Word], ...]
    rest: tuple[Word, ...]
    switched: str = ""


def take(launcher: Launcher, words: Sequence[Word]) -> Taken:
    """The options in front of the first operand, with their values.

    Args:
        launcher: whose words they are.
        words: those after its name, and after its subcommand.
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
    return Taken(tuple(options), tuple(words[at:]), switched)


def _attached(launcher: Launcher, word: Word) -> tuple[Option, Word] | None:
    """A short option with its value in one word: ``-N2``."""
    option = launcher.options.get(word.text[:2])
    if option is None or word.text.startswith("--") or len(word.text) < 3:
        return None
    return option, _part(word, word.text[2:])


def _part(word: Word, text: str) -> Word:
    return Word(text, word.place, word.known)
