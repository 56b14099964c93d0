"""What EpochZero raises.

EpochZeroError
├── InputError       an input is missing, unreadable or not what it claims to be
├── CatalogError     a signature or rule file is wrong
└── TrainingFault    a watched training has a fault that its user does not want to train with
"""

from __future__ import annotations

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
