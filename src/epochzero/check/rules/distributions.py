"""Which installed distributions provide which modules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from epochzero.check.rule import Target
from epochzero.check.target.model import Distribution
from epochzero.check.target.packages import likely_modules, well_known

if (
    TYPE_CHECKING
):  # Importing packaging is slow, and most targets do not list requirements of packages.
    from packaging.requirements import Requirement


Installed: TypeAlias = Mapping[str, Distribution]


def providers(module: str, installed: Installed) -> tuple[Distribution, ...]:
    """The distributions that provide a top-level module, as far as their modules are known or likely."""
    return tuple(dist for dist in installed.values() if module in likely_modules(dist))


def distributions_of(module: str) -> tuple[str, ...]:
    """Names of well-known distributions that provide a top-level module."""
    return tuple(name for name, modules in well_known().items() if module in modules)


@cache
def _parsed(text: str) -> Requirement | None:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def requirements(distribution: Distribution) -> Iterable[Requirement]:
    """The requirements of a distribution, without those that violate PEP 508."""
    return [
        requirement for text in distribution.requires if (requirement := _parsed(text)) is not None
    ]


def applies(requirement: Requirement, target: Target) -> bool:
    """Whether the marker of a requirement holds on the target, without extras."""
    if requirement.marker is None:
        return True
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName, default_environment

    environment = {str(key): str(value) for key, value in default_environment().items()}
    if target.python is not None:
        environment["python_version"] = ".".join(map(str, target.python[:2]))
        environment["python_full_version"] = ".".join(map(str, target.python))
    try:
        return requirement.marker.evaluate({**environment, "extra": ""})
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False
