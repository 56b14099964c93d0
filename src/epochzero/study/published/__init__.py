"""Published results of studies: one TOML file per study, each table with its source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class FailureStudy:
    """A study of failed jobs.

    Attributes:
        title, short: of the study.
        categories: failures of each category.
        root_causes: failures by category, then root cause; zero counts are omitted.
        phases: share of failures and of GPU time by phase.
        sources: the table or figure of the study for each of these.
    """

    title: str
    short: str
    categories: Mapping[str, int]
    root_causes: Mapping[str, Mapping[str, int]]
    phases: Mapping[str, Mapping[str, float]]
    sources: Mapping[str, str]


@cache
def zhang2020() -> FailureStudy:
    """Zhang et al., ICSE 2020: 4,960 failed jobs of a platform of Microsoft."""
    text = files(__name__).joinpath("zhang2020.toml").read_text(encoding="utf-8")
    return FailureStudy(**tomllib.loads(text))


@dataclass(frozen=True, slots=True)
class LocalizationStudy:
    """A study of bug localization. Techniques are named as in `epochzero.locate`.

    Attributes:
        title, short: of the study.
        systems: Top@1, Top@5, Top@10, MRR and MAP of each technique, by system.
        effects: Cohen's d of the average precision between the systems, by technique.
        size_matched: MAP for files of one range of sizes, deep learning and traditional.
        classes, types: MRR and MAP of each technique, by class of project and by type of bug.
        extrinsic_share: by system.
        extrinsic_by_type: share of extrinsic bugs.
        extrinsic: MAP of extrinsic and intrinsic bugs of each technique, by system.
        footnotes: values that its published files contradict, by the name of the part above.
    """

    title: str
    short: str
    systems: Mapping[str, Mapping[str, Sequence[float]]]
    effects: Mapping[str, float]
    size_matched: Mapping[str, Sequence[float]]
    classes: Mapping[str, Mapping[str, Sequence[float]]]
    types: Mapping[str, Mapping[str, Sequence[float]]]
    extrinsic_share: Mapping[str, float]
    extrinsic_by_type: Mapping[str, float]
    extrinsic: Mapping[str, Mapping[str, Sequence[float]]]
    footnotes: Mapping[str, Sequence[str]]


@cache
def jahan2025() -> LocalizationStudy:
    """Jahan, Shah and Rahman, EMSE 2025: five techniques on 1,795 bugs each of two kinds of systems."""
    text = files(__name__).joinpath("jahan2025.toml").read_text(encoding="utf-8")
    return LocalizationStudy(**tomllib.loads(text))
