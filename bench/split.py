"""Which cases were looked at while building, and which were held out."""

from __future__ import annotations

import hashlib

__all__ = ["held", "project_of"]


def project_of(case: str) -> str:
    """The project of a case: ``owner+name`` of ``owner+name#12``, else the case itself."""
    return case.split("#")[0]


def held(case: str) -> bool:
    """Whether the case is held out: all cases of a project are on the same side.

    >>> held("tensorflow+tensorflow#39024") == held("tensorflow+tensorflow#1")
    True
    """
    return hashlib.sha256(project_of(case).encode()).digest()[0] % 2 == 1
