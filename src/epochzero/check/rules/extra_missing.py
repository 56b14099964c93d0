"""A call needs a module that only an extra of the library brings, and the target lacks it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from epochzero.check.api import class_of
from epochzero.check.findings import Finding, Unknown
from epochzero.check.program.events import Called
from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant
from epochzero.check.reach import Reach
from epochzero.check.rules.base import Case, Rule
from epochzero.check.rules.distributions import providers
from epochzero.check.rules.situation import finding_at, guarded
from epochzero.check.target.model import Target
from epochzero.check.target.packages import normalized

__all__ = ["RULE"]


@cache
def _table() -> tuple[Mapping[str, Any], ...]:
    source = files(__package__).joinpath("extra_missing.toml")
    return tuple(tomllib.loads(source.read_text(encoding="utf-8"))["call"])


@cache
def _names() -> frozenset[str]:
    """The functions of all entries."""
    return frozenset(name for entry in _table() for name in entry["names"])


def _check(program: Program, target: Target) -> Iterable[Finding | Unknown]:
    if target.distributions is None or program.job.installs:
        return
    reach = Reach.of(program)
    for call in program.calls:
        if call.name not in _names() and class_of(call.name) not in _names():
            continue
        for entry in _table():
            if not _is_meant(entry, call) or _is_there(entry, target):
                continue
            if not guarded(call.at, ImportError):
                yield finding_at(
                    call.at,
                    RULE.id,
                    RULE.category,
                    severity=reach.severity(call.at),
                    message=f"{call.name} needs {' or '.join(entry['needs'])} here, and no "
                    "distribution of the target brings it.",
                    consequence=entry["error"],
                    fix=f"Install {entry['install']}.",
                )


def _is_meant(entry: Mapping[str, Any], call: Called) -> bool:
    """Whether the call is one of the function, with the argument that decides."""
    if call.name not in entry["names"] and class_of(call.name) not in entry["names"]:
        return False
    if "begins" not in entry:
        return True
    at = entry["at"]
    value = (
        call.arguments[at] if at < len(call.arguments) else call.keywords.get(entry["parameter"])
    )
    text = value.value if isinstance(value, Constant) else None
    return isinstance(text, str) and text.startswith(tuple(entry["begins"]))


def _is_there(entry: Mapping[str, Any], target: Target) -> bool:
    """Whether the target brings what is needed, or lacks the library itself."""
    here = {normalized(name): one for name, one in (target.distributions or {}).items()}
    library = entry["names"][0].partition(".")[0]
    if not providers(library, here):
        return True  # told by the rule of missing modules
    return any(name in here for name in entry["brings"]) or any(
        providers(module, here) for module in entry["needs"]
    )


_MAKE = "import gymnasium as gym\n\nenv = gym.make('{}')\n"
_GYMNASIUM = '[distributions.gymnasium]\nversion = "1.2.2"\nmodules = ["gymnasium"]\n'
_BOX2D = '[distributions.box2d-py]\nversion = "2.3.5"\nmodules = ["Box2D"]\n'

RULE = Rule(
    id="extra-missing",
    title="A call needs a module that only an extra of the library brings",
    category="library_not_found",
    why="Some functions of a library import others only when they are called, such as the engine of an "
    "environment or the reader of a format: the import of the library says nothing.",
    fix="Install the library with its extra.",
    source="gymnasium's documentation of its extras; pandas, Installation, optional dependencies",
    check=_check,
    catches=(
        Case({"train.py": _MAKE.format("LunarLander-v3")}, target=_GYMNASIUM, line=3),
        Case({"train.py": "import pandas as pd\nx = pd.read_parquet('https://a.org/x')\n"}, line=2,
             target='[distributions.pandas]\nversion = "2.2.3"\nmodules = ["pandas"]\n'),
    ),
    leaves=(
        Case({"train.py": _MAKE.format("LunarLander-v3")}, target=_GYMNASIUM + _BOX2D),
        Case({"train.py": _MAKE.format("CartPole-v1")}, target=_GYMNASIUM),
        Case({"train.py": _MAKE.format("LunarLander-v3")}),
        Case({"train.py": "import gymnasium as gym\n\ntry:\n    gym.make('LunarLander-v3')\n"
              "except Exception:\n    pass\n"}, target=_GYMNASIUM),
    ),
)  # fmt: skip
