"""Explains an error by an earlier line that tells its reason, as a person does who reads upwards.

A launch script often continues after a failed step, so that the job fails later at what the step did not
provide. NaN in a metric comes from a loss that was NaN before, and a CUDA error from the fault of the GPU
that the kernel reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from epochzero.diagnose.judgment import WEAK, JudgedEvent

_MISSING = frozenset({"library_not_found", "path_not_found"})
_MODULE = re.compile(r"No module named '?(\w+)")
_PATH = re.compile(r"/[\w.@+-]+(?:/[\w.@+-]+)+")
_LOCAL_PATH = re.compile(r"(?<![\w:/.])/\w")
_WORD = re.compile(r"[\w-]{3,}")
_INSTALLS = re.compile(
    r"\bshell/(?:pip|conda|module)-|\b(?:conda|mamba|micromamba|activate|pip3?|uv|poetry|spack)\b"
)
"""Names of signatures and programs that install packages or activate an environment."""
_FETCHES = re.compile(
    r"^(?:\S+: line \d+: )?(?:curl|wget|git|rsync|scp|rclone|gsutil|azcopy|s5cmd|gdown|kaggle|tar|unzip)\b|"
    r"^(?:fatal error|download failed): .*(?:\bs3://|An error occurred)|^fatal: "
)
"""Messages of programs that fetch data from another machine or unpack it."""
_NOT_FINITE = re.compile(r"(?i)\b(?:nan|non-?finite|inf(?:inity|inite)?)\b")
_KERNEL = re.compile(r"\bkernel: |\bNVRM: ")
_NO_CAUSE = ("set_aside", "recovered")
"""Roles of warnings, and of failures after which the job continued."""


def reason(root: JudgedEvent, judged: Sequence[JudgedEvent]) -> JudgedEvent | None:
    """The first event above the root, in its run of the log, that explains it."""
    names = _names(root)
    return next((j for j in _above(root, judged) if _explains(j, root, names)), None)


def hint(root: JudgedEvent | None, judged: Sequence[JudgedEvent]) -> tuple[str, ...]:
    """A sentence about the first warning above the root that names what is missing there."""
    names = _names(root) if root else frozenset()
    return tuple(
        f"{j.event.log}:{j.event.line} may explain it: {j.event.shown.strip()[:200]}"
        for j in (_above(root, judged) if root and names else ())
        if j.role in _NO_CAUSE and j.event.kind == "line" and j.event.level and _mentions(j, names)
    )[:1]


def _above(root: JudgedEvent, judged: Sequence[JudgedEvent]) -> Iterator[JudgedEvent]:
    end = root.event
    for j in sorted(judged, key=lambda j: j.event.line):
        if (j.event.log, j.event.starts) == (end.log, end.starts) and j.event.line < end.line:
            yield j


def _explains(other: JudgedEvent, root: JudgedEvent, names: frozenset[str]) -> bool:
    if root.category != "loss_nan" and other.category == "loss_nan":
        lasts = not other.event.steps
        return lasts and _NOT_FINITE.search(root.event.message) is not None
    if not other.category or other.claim < WEAK:
        return False
    if other.category != root.category and _mentions(other, names):
        return True
    if root.category == "path_not_found":
        names_another = _LOCAL_PATH.search(other.event.text) is not None
        return _FETCHES.search(other.event.text) is not None and not names_another
    if other.match is None:
        return False
    if root.category == "library_not_found":
        return _INSTALLS.search(f"{other.match.signature.name} {other.event.text}") is not None
    reports = [_KERNEL.search(j.event.shown) is not None for j in (other, root)]
    return other.category == root.category and reports == [True, False]


def _names(root: JudgedEvent) -> frozenset[str]:
    """The missing module; the missing path and its parent directories of at least two parts."""
    if root.category not in _MISSING:
        return frozenset()
    names = {module.lower() for module in _MODULE.findall(root.event.message)}
    for path in _PATH.findall(root.event.message):
        parts = path.split("/")
        names |= {"/".join(parts[:n]) for n in range(3, len(parts) + 1)}
    return frozenset(names)


def _mentions(other: JudgedEvent, names: frozenset[str]) -> bool:
    text = other.event.text
    words = (word.lower().replace("-", "_") for word in _WORD.findall(text))
    return not names.isdisjoint((*_PATH.findall(text), *words))
