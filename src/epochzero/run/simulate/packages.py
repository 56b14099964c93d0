"""The packages of the platform, compared with those of this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement

from epochzero.check.target import likely_modules, normalized, read_interpreter
from epochzero.check.target.model import Distribution, Target
from epochzero.check.target.packages import installed
from epochzero.errors import InputError
from epochzero.run.simulate.places import job_python

_ALWAYS = frozenset(("pip", "setuptools", "wheel", "epochzero"))
"""Those that an environment has without being asked, and ourselves."""
_BUILD_S = 1800.0
_SINCE = {"graphlib": (3, 9), "tomllib": (3, 11), "zoneinfo": (3, 9)}
"""Modules of the standard library with the Python that brought them (What's New in Python)."""


@dataclass(frozen=True, slots=True)
class PackageDifferences:
    """How this machine's packages differ from the platform's.

    Attributes:
        distributions: that only this machine has.
        modules: top-level modules that come with these alone.
        own_modules: those that the platform lacks and that what it has needs here: libraries may import them.
        missing: distributions that only the platform has.
        versions: ``name there and here`` of packages whose versions differ.
        python: of this machine, where it is another one; empty otherwise.
    """

    distributions: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    own_modules: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    python: str = ""


def compare(
    target: Target, command: Sequence[str], environment: Mapping[str, str]
) -> PackageDifferences | None:
    """What differs; None where the job's Python or the platform's packages are not known."""
    python = job_python(command, environment)
    if python is None:
        return None
    interpreter = read_interpreter(python)
    other = ""
    if target.python and interpreter.version and target.python[:2] != interpreter.version[:2]:
        other = ".".join(map(str, interpreter.version))
    newer = tuple(
        sorted(name for name, since in _SINCE.items() if target.python and target.python < since)
    )
    if target.distributions is None:
        return PackageDifferences(own_modules=newer, python=other) if other else None
    here = installed(interpreter.folders)
    listed = target.distributions
    there = _with_requirements(listed, here)
    needed = {name: distribution for name, distribution in there.items() if name not in listed}
    extra = {name: dist for name, dist in here.items() if name not in there and name not in _ALWAYS}
    always = {name: distribution for name, distribution in here.items() if name in _ALWAYS}
    modules = _modules(extra, here) - _modules(there | always, here)
    versions = (
        f"{name} {distribution.version} on the target, {here[name].version} here"
        for name, distribution in sorted(there.items())
        if name in here and distribution.version and distribution.version != here[name].version
    )
    return PackageDifferences(
        tuple(sorted(extra)),
        tuple(sorted(modules)),
        (*sorted(_modules(needed, here) - _modules(listed, here)), *newer),
        tuple(sorted(listed.keys() - here.keys() - _ALWAYS)),
        tuple(versions),
        other,
    )


def _modules(
    distributions: Mapping[str, Distribution], here: Mapping[str, Distribution]
) -> set[str]:
    """Their top-level modules: of those that a list only names, as they are installed here."""
    return {
        module
        for name, distribution in distributions.items()
        for module in likely_modules(here.get(name, distribution))
    }


def _with_requirements(
    there: Mapping[str, Distribution], here: Mapping[str, Distribution]
) -> dict[str, Distribution]:
    """What the platform has, with what that needs as it is installed here: a list may name the tops only."""
    found = dict(there)
    waiting = list(there)
    while waiting:
        known = here.get(waiting.pop())
        for text in known.requires if known else ():
            with suppress(InvalidRequirement, UndefinedEnvironmentName):
                needed = Requirement(text)
                name = normalized(needed.name)
                wanted = needed.marker is None or needed.marker.evaluate({"extra": ""})
                if wanted and name in here and name not in found:
                    found[name] = Distribution(name, "", here[name].modules)
                    waiting.append(name)
    return found


def build_environment(
    target: Target, command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> Path:
    """A virtual environment with the target's packages, from the index that pip is set up for.

    The same list of packages is built once. What cannot be built is removed.

    Raises:
        InputError: no Python, no list, or a package that is not to be had.
    """
    python = job_python(command, environment)
    if python is None or not target.distributions:
        missing = "no Python on PATH" if python is None else f"{target.name} lists no packages"
        raise InputError(f"--build-packages: {missing}")
    wanted = [
        f"{dist.name}=={dist.version}" if dist.version else dist.name
        for _, dist in sorted(target.distributions.items())
        if dist.name not in _ALWAYS
    ]
    place = folder / sha256("\n".join((str(python), *wanted)).encode()).hexdigest()[:16]
    if (place / "built").exists():
        return place
    steps = ([str(python), "-m", "venv", str(place)], [
        str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--no-deps", *wanted,
    ])  # fmt: skip
    try:
        for step in steps:
            subprocess.run(
                step, env=dict(environment), check=True, capture_output=True, timeout=_BUILD_S
            )
    except (OSError, subprocess.SubprocessError) as error:
        rmtree(place, ignore_errors=True)
        output = (getattr(error, "stderr", b"") or str(error).encode()).decode(errors="replace")
        last = output.strip().splitlines()[-1:] or [type(error).__name__]
        raise InputError(
            f"--build-packages: {target.name}'s packages cannot be installed: {last[0]}"
        ) from error
    (place / "built").touch()
    return place
