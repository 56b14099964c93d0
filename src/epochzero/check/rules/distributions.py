"""Which installed distribution brings which module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from epochzero.check.rules.base import Target
from epochzero.check.target.model import Distribution
from epochzero.check.target.packages import likely_modules, well_known

if TYPE_CHECKING:  # It takes its time, and most targets say nothing of what packages require.
    from packaging.requirements import Requirement


Installed: TypeAlias = Mapping[str, Distribution]


def providers(module: str, installed: Installed) -> tuple[Distribution, ...]:
    """The distributions that bring a top-level module, as far as their modules are known or likely."""
    return tuple(one for one in installed.values() if module in likely_modules(one))


def distributions_of(module: str) -> tuple[str, ...]:
    """Names of the well-known distributions that bring a top-level module."""
    return tuple(name for name, modules in well_known().items() if module in modules)


@cache
def _parsed(text: str) -> Requirement | None:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def requirements(distribution: Distribution) -> Iterable[Requirement]:
    """Its requirements; without those that are not written as PEP 508 wants."""
    return [one for text in distribution.requires if (one := _parsed(text)) is not None]


def applies(requirement: Requirement, target: Target, extra: str = "") -> bool:
    """Whether a requirement's marker holds on the target, for one of the extras."""
    if requirement.marker is None:
        return True
    from packaging.markers import (
        UndefinedComparison,
        UndefinedEnvironmentName,
        default_environment,
    )

    environment = {str(key): str(value) for key, value in default_environment().items()}
    if target.python is not None:
        environment["python_version"] = ".".join(map(str, target.python[:2]))
        environment["python_full_version"] = ".".join(map(str, target.python))
    try:
        return requirement.marker.evaluate({**environment, "extra": extra})
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False
