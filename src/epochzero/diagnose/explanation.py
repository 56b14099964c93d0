"""Explains a missing module, program or file by the earlier line that tells why it is missing.

A launch script often continues after a failed step, so that the job fails later at what the step did not
provide. A person reads upwards until the first complaint that names the missing thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from epochzero.diagnose.judgment import WEAK, JudgedEvent

_MISSING = frozenset({"library_not_found", "path_not_found"})
_MODULE = re.compile(r"No module named '?(\w+)")
_PATH = re.compile(r"/[\w.@+-]+(?:/[\w.@+-]+)+")
_WORD = re.compile(r"[\w-]{3,}")
_INSTALLS = re.compile(
    r"\bshell/(?:pip|conda|module)-|\b(?:conda|mamba|micromamba|activate|pip3?|uv|poetry|spack)\b"
)
"""Names of signatures and programs that install packages or activate an environment."""
_NO_CAUSE = ("set_aside", "recovered")
"""Roles of warnings, and of failures after which the job continued."""


def failed_step(root: JudgedEvent, judged: Sequence[JudgedEvent]) -> JudgedEvent | None:
    """The first failure above the root, in its run of the log, that explains what is missing there."""
    names = _names(root)
    return next((j for j in _above(root, judged) if _explains(j, root, names)), None)


def hint(root: JudgedEvent | None, judged: Sequence[JudgedEvent]) -> tuple[str, ...]:
    """A sentence about the first warning above the root that names what is missing there."""
    names = _names(root) if root else frozenset()
    return tuple(
        f"{j.event.log}:{j.event.line} may explain it: {j.event.shown.strip()[:200]}"
        for j in (_above(root, judged) if root else ())
        if j.role in _NO_CAUSE and j.event.kind == "line" and j.event.level and _mentions(j, names)
    )[:1]


def _above(root: JudgedEvent, judged: Sequence[JudgedEvent]) -> Iterator[JudgedEvent]:
    """What is reported above the root in its run of the log; nothing unless something is missing there."""
    end = root.event
    if root.category in _MISSING:
        for j in sorted(judged, key=lambda j: j.event.line):
            if (j.event.log, j.event.starts) == (end.log, end.starts) and j.event.line < end.line:
                yield j


def _explains(other: JudgedEvent, root: JudgedEvent, names: frozenset[str]) -> bool:
    """Whether another reason is given for the missing thing, or an installation failed before an import."""
    if not other.category or other.claim < WEAK:
        return False
    if other.category != root.category and _mentions(other, names):
        return True
    if root.category != "library_not_found" or other.match is None:
        return False
    return _INSTALLS.search(f"{other.match.signature.name} {other.event.text}") is not None


def _names(root: JudgedEvent) -> frozenset[str]:
    """The missing module; the missing path and its parent directories of at least two parts."""
    names = {module.lower() for module in _MODULE.findall(root.event.message)}
    for path in _PATH.findall(root.event.message):
        parts = path.split("/")
        names |= {"/".join(parts[:n]) for n in range(3, len(parts) + 1)}
    return frozenset(names)


def _mentions(other: JudgedEvent, names: frozenset[str]) -> bool:
    text = other.event.text
    words = (word.lower().replace("-", "_") for word in _WORD.findall(text))
    return not names.isdisjoint((*_PATH.findall(text), *words))
