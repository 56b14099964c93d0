"""The words that every room shares: dimensions, categories, root causes, phases, retry advice.

The words are data: one TOML file a vocabulary, each entry with its definition, source and
example. Categories and dimensions follow Zhang et al., "An Empirical Study on Program Failures
of Deep Learning Jobs", ICSE 2020, Table 1; the infrastructure dimension is ours. Faults of a training
follow Humbatova et al., "Taxonomy of Real Faults in Deep Learning Systems", ICSE 2020, Figure 4.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

__all__ = [
    "Term", "categories", "dimensions", "faults", "find", "phases", "retries", "root_causes",
    "symptoms",
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


Vocabulary = Mapping[str, Term]


@cache
def _load(vocabulary: str) -> Vocabulary:
    text = files(__name__).joinpath(f"{vocabulary}.toml").read_text(encoding="utf-8")
    return MappingProxyType(
        {name: Term(name=name, **fields) for name, fields in tomllib.loads(text).items()}
    )


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


def find(word: str) -> Term:
    """The term that a person means by ``word``: its name or its title, in any case.

    Raises:
        KeyError: no vocabulary has the word.
    """
    wanted = word.strip().casefold().replace(" ", "_").replace("-", "_")
    for vocabulary in (
        categories(), dimensions(), root_causes(), phases(), retries(), faults(), symptoms(),
    ):  # fmt: skip
        for term in vocabulary.values():
            if wanted in (term.name, term.title.casefold().replace(" ", "_")):
                return term
    raise KeyError(word)
