"""The result of localization: ranked places with reasons, and whether the bug is in this code at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

SCHEMA = "epochzero.ranking/1"
REPORTED_PROBABILITY = 0.8
"""Below it a cause outside of this code is only a hint in the JSON and with ``--explain``: of 443 bugs
that were fixed in their own repository's Python, 140 were reported with a threshold of 0.5."""

Level = Literal["file", "function", "line"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a place is ranked where it is.

    Attributes:
        kind: ``frame``, ``path``, ``name``, ``message``, ``words``, ``report``, ``history``, ``coverage``, ``model``.
        text: for a person to read.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """A place where the bug may be.

    Attributes:
        path: of the file, from the top of the repository.
        score: of the method, higher is likelier; comparable within one ranking only. A language
            model that reranks changes the order, not the scores.
        unit: qualified name of the class or function; empty at file level.
        start, end: its first and last line, from 1; 0 at file level.
        reasons: the strongest first.
        code: the source line, without the blanks around it; empty but at line level.
        excerpt: the source lines that fit the report best, with their numbers; empty if they were
            not requested.
    """

    path: str
    score: float
    unit: str = ""
    start: int = 0
    end: int = 0
    reasons: tuple[Reason, ...] = ()
    code: str = ""
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class Reranking:
    """What a language model was asked.

    Attributes:
        model: its name on the server.
        server: host and port.
        candidates: places that it saw.
        requests: sent for this ranking; 0 if the answer was cached.
        prompt_tokens, completion_tokens: as counted by the server; 0 if it does not count them.
        cost_usd: None if the price is unknown.
        applied: whether its answer changed the ranking; if not, a note says why.
    """

    model: str
    server: str
    candidates: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    applied: bool


@dataclass(frozen=True, slots=True)
class Extrinsic:
    """Whether the cause lies outside of this code.

    Attributes:
        probability: that it does, calibrated on projects that the model had not seen.
        suspect: ``library``, ``driver``, ``gpu``, ``operating_system``, ``data``, ``configuration``,
            or empty.
        name: of the suspect, with its version if the report contains it.
        evidence: lines of the report.
    """

    probability: float
    suspect: str = ""
    name: str = ""
    evidence: tuple[str, ...] = ()

    @property
    def is_likely(self) -> bool:
        """Whether it is likely enough to be reported unasked."""
        return self.probability >= REPORTED_PROBABILITY


@dataclass(frozen=True, slots=True)
class Ranking:
    """Places in a repository, the likeliest first.

    Attributes:
        commit: what was searched; empty for a work tree with changes.
        level: what the items are.
        method: how they were ranked.
        searched: how many files were searched.
        items: the places.
        bug_type: ``model``, ``training``, ``tensor``, ``api``, ``gpu`` or ``ndl`` (no fault of deep
            learning; Jahan et al., EMSE 2025, Section 4); empty if it was not requested.
        extrinsic: None if it was not requested.
        notes: what was left out and may matter.
        reranking: None if no language model was asked.
    """

    commit: str
    level: Level
    method: str
    searched: int
    items: tuple[Item, ...]
    bug_type: str = ""
    extrinsic: Extrinsic | None = None
    notes: tuple[str, ...] = ()
    reranking: Reranking | None = None

    def to_dict(self) -> Mapping[str, Any]:
        """The form of the JSON output."""
        return {"schema": SCHEMA, **asdict(self)}
