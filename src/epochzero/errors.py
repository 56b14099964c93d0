"""What EpochZero raises.

EpochZeroError
├── InputError       an input is missing, unreadable or not what it claims to be
├── CatalogError     a signature or rule file is wrong
└── TrainingFault    a watched training has a fault that its user does not want to train with
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class EpochZeroError(Exception):
    """Anything that EpochZero reports to its user; the message says what, where and what to do."""


class InputError(EpochZeroError):
    """An input is missing, unreadable or not what it claims to be."""


class CatalogError(EpochZeroError):
    """A signature or rule file is wrong; the message names the file and the field."""


class TrainingFault(EpochZeroError):  # noqa: N818 - the fault is the training's
    """A watched training has a fault for which its user wants it to end.

    Attributes:
        finding: the fault, an `epochzero.run.watch.model.TrainingFinding`.
    """

    def __init__(self, message: str, finding: Any) -> None:
        super().__init__(message)
        self.finding = finding


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Report an `OSError` as an `InputError` that names the file or directory."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Report an `OSError` as an `InputError` that names the file or directory."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def suggestion(word: str, known: Iterable[str], otherwise: str) -> str:
    """Suggest the known word that is most similar to another; `otherwise` if none is."""
    from difflib import get_close_matches

    near = get_close_matches(word, sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise
