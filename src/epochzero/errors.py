"""What EpochZero raises.

EpochZeroError
├── InputError       an input is missing, unreadable or not what it claims to be
└── CatalogError     a signature or rule file is wrong
"""

from __future__ import annotations

__all__ = ["CatalogError", "EpochZeroError", "InputError"]


class EpochZeroError(Exception):
    """Anything that EpochZero reports to its user; the message says what, where and what to do."""


class InputError(EpochZeroError):
    """An input is missing, unreadable or not what it claims to be."""


class CatalogError(EpochZeroError):
    """A signature or rule file is wrong; the message names the file and the field."""
