"""The target lacks shared libraries that a module loads."""

from __future__ import annotations

from epochzero.check.builds import Needed, needed_libraries
from epochzero.check.program.events import Imported
from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Reach,
    Rule,
    Target,
    claim_at,
    guarded,
)


def _check(program: Program, target: Target) -> Claims:
    if target.shared_libraries is None:
        return
    reported: set[str] = set()
    for event in program.imports:
        needed = needed_libraries().get(event.module.partition(".")[0])
        if needed is None or needed.module in reported or not _loads(event, needed):
            continue
        missing = _missing(needed, target)
        if missing and not guarded(event.at, ImportError, OSError):
            reported.add(needed.module)
            yield claim_at(
                event.at,
                severity=Reach.of(program).severity(event.at),
                message=f"{needed.module} loads {', '.join(missing)}, which the target does not have.",
                consequence=f"ImportError: {missing[0]}: cannot open shared object file: No such file "
                "or directory",
                fix=f"Install these packages in the image: {needed.packages}.",
            )


def _loads(event: Imported, needed: Needed) -> bool:
    return not needed.within or needed.within in (*event.names, event.module.rpartition(".")[2])


def _missing(needed: Needed, target: Target) -> list[str]:
    """The first library of each group, if the target has none of the group."""
    have = target.shared_libraries or frozenset()
    packages = target.distributions
    if packages is not None and needed.distribution not in packages:
        return []  # Another distribution provides the module, with its own libraries.
    if needed.unless and (packages is None or needed.unless in packages):
        return []
    if packages is None and needed.module == "cv2":
        return []  # opencv-python-headless provides the same module.
    return [group[0] for group in needed.needs if not any(name in have for name in group)]


def _target(libraries: str, **packages: str) -> str:
    named = "".join(f'"{name}" = "{have}"\n' for name, have in packages.items())
    return f"shared_libraries = [{libraries}]\n" + (f"[distributions]\n{named}" if packages else "")


_OPENCV = {"train.py": "import cv2\nprint(cv2)\n"}
_HEADFUL = {"opencv-python": "4.9.0.80"}
_LIGHTGBM = {"train.py": "import lightgbm as lgb\nprint(lgb)\n"}
_GUARDED = {"train.py": "try:\n    import cv2\nexcept ImportError:\n    cv2 = None\nprint(cv2)\n"}
_MPI = {"train.py": "from mpi4py import MPI\nprint(MPI)\n"}

RULE = Rule(
    title="The target lacks shared libraries that a module loads",
    category="library_not_found",
    why="pip installs Python packages, but not the system libraries that they load. Slim images "
    "lack many of them.",
    fix="Install the system package in the image, or a distribution that does not need it.",
    source="Zhang et al., ICSE 2020, Table 1, Library Not Found (a Python module or dependent library)",
    check=_check,
    catches=(
        Case(_OPENCV, target=_target('"libc.so.6"', **_HEADFUL), line=1),
        Case(_OPENCV, target=_target('"libGL.so.1"', **_HEADFUL), line=1),
        Case(_LIGHTGBM, target=_target('"libc.so.6"'), line=1),
        Case(_MPI, target=_target('"libc.so.6"', mpi4py="4.0.0"), line=1),
    ),
    leaves=(
        Case(_OPENCV, target=_target('"libGL.so.1", "libglib-2.0.so.0"', **_HEADFUL)),
        Case(_OPENCV, target=_target('"libc.so.6"', **{"opencv-python-headless": "4.9.0.80"})),
        Case(_OPENCV, target=_target('"libc.so.6"')),
        Case(_GUARDED, target=_target('"libc.so.6"', **_HEADFUL)),
        Case(_MPI, target=_target('"libmpi.so.12"', mpi4py="4.0.0")),
        Case(_LIGHTGBM),
    ),
)
