"""The words that every room shares: dimensions, categories, root causes, phases, retry advice.

The words are data: one TOML file a vocabulary, each entry with its definition, source and
example. Categories and dimensions follow Zhang et al., "An Empirical Study on Program Failures
of Deep Learning Jobs", ICSE 2020, Table 1; the infrastructure dimension is ours. Faults of a training
follow Humbatova et al., "Taxonomy of Real Faults in Deep Learning Systems", ICSE 2020, Figure 4; its
leaves are a vocabulary of their own, with what is made to find each.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

__all__ = [
    "Border", "Leaf", "Node", "Term", "borders", "categories", "dimensions", "faults", "find", "leaves", "nearest", "nodes",
    "phases", "retries", "root_causes", "symptoms",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a vocabulary.

    Attributes:
        name: the stable identifier, as it stands in JSON.
        title: the name for people.
        definition: what belongs under the word.
        source: where the word comes from.
        example: a typical message or situation.
        dimension: the dimension of a category; empty for other vocabularies.
    """

    name: str
    title: str
    definition: str
    source: str
    example: str = ""
    dimension: str = ""


@dataclass(frozen=True, slots=True)
class Leaf(Term):
    """One leaf of the taxonomy of real faults.

    Attributes:
        node: the name of the node that it hangs from.
        artifacts: how often it was found on Stack Overflow and GitHub.
        interviews: how often it was reported in interviews.
        watch: the faults of a training that `run --watch` names where it finds this.
        check: the rules of `check` that are made for it.
        commands: the other commands that are made to show it.
        not_injected: why `model mutate` has no operator for it; empty where it has one.
    """

    node: str = ""
    artifacts: int = 0
    interviews: int = 0
    watch: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    not_injected: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """Where leaves hang.

    Attributes:
        name: the stable identifier.
        title: the way from the root, as in the figure.
        survey: share of the study's 21 developers who had met such a fault, in percent.
    """

    name: str
    title: str
    survey: int

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Those that hang from it."""
        return tuple(leaf for leaf in leaves().values() if leaf.node == self.name)


@dataclass(frozen=True, slots=True)
class Border:
    """What decides between two categories that are easily confused.

    Attributes:
        yes, no: the categories, or other values of the field, if the answer is yes or no.
        question: that decides.
        yes_example, no_example: a message on each side.
        field: ``category``, ``phase``, ``root_cause`` or ``retry``.
    """

    yes: str
    no: str
    question: str
    yes_example: str
    no_example: str
    field: str = "category"


Vocabulary = Mapping[str, Term]


def _entries(vocabulary: str) -> dict[str, dict[str, Any]]:
    text = files(__name__).joinpath(f"{vocabulary}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def _load(vocabulary: str) -> Vocabulary:
    return MappingProxyType(
        {name: Term(name=name, **fields) for name, fields in _entries(vocabulary).items()}
    )


@cache
def borders() -> tuple[Border, ...]:
    """The borders between categories that are easily confused."""
    text = files(__name__).joinpath("borders.toml").read_text(encoding="utf-8")
    return tuple(Border(**raw) for raw in tomllib.loads(text)["border"])


def dimensions() -> Vocabulary:
    """The study's 4 dimensions and ours, by name."""
    return _load("dimensions")


def categories() -> Vocabulary:
    """The study's 20 categories and the infrastructure ones, by name."""
    return _load("categories")


def root_causes() -> Vocabulary:
    """The study's 5 root causes, library defect, infrastructure and unknown, by name."""
    return _load("root_causes")


def phases() -> Vocabulary:
    """The study's 4 phases of a job and unknown, by name."""
    return _load("phases")


def retries() -> Vocabulary:
    """What a retry of the same job would bring, by name."""
    return _load("retries")


def faults() -> Vocabulary:
    """What is wrong with a training that runs to its end, by name; leaves of the taxonomy of real faults."""
    return _load("faults")


def symptoms() -> Vocabulary:
    """What a faulty training shows, by name."""
    return _load("symptoms")


@cache
def nodes() -> Mapping[str, Node]:
    """The nodes of the taxonomy of real faults that have leaves, by name."""
    return MappingProxyType(
        {name: Node(name=name, **fields) for name, fields in _entries("nodes").items()}
    )


@cache
def leaves() -> Mapping[str, Leaf]:
    """The 92 leaves of the taxonomy of real faults, by name."""
    return MappingProxyType(
        {name: _leaf(name, fields) for name, fields in _entries("leaves").items()}
    )


def _leaf(name: str, fields: dict[str, Any]) -> Leaf:
    node = nodes()[fields["node"]].title
    source = f"Humbatova et al., ICSE 2020, Figure 4: {node}"
    lists = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    return Leaf(name=name, source=source, **{**fields, **lists})


def find(word: str) -> Term:
    """The term that a person means by ``word``: its name or else its title, in any case.

    Raises:
        KeyError: no vocabulary has the word.
    """
    wanted = word.strip().casefold().replace(" ", "_").replace("-", "_")
    terms = [term for vocabulary in _vocabularies() for term in vocabulary.values()]
    for term in terms:
        if wanted == term.name:
            return term
    for term in terms:
        if wanted == term.title.casefold().replace(" ", "_"):
            return term
    raise KeyError(word)


def nearest(word: str, others: Iterable[str] = ()) -> str | None:
    """The name of a term, or one of the other names, that is most like a wrong one; None if none is."""
    from difflib import get_close_matches

    names = [*others, *(name for vocabulary in _vocabularies() for name in vocabulary)]
    return next(iter(get_close_matches(word.replace(" ", "_").lower(), names, n=1)), None)


def _vocabularies() -> tuple[Vocabulary, ...]:
    return (
        categories(), dimensions(), root_causes(), phases(), retries(), faults(), symptoms(), leaves(),
    )  # fmt: skip
