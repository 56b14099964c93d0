"""The job's environment variables: secrets withheld, services switched off."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any


def contained_environment(variables: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables for a contained job, and the names of those whose values it does not get."""
    catalogue = _catalogue()
    environment: dict[str, str] = {}
    withheld: list[str] = []
    for name, value in variables.items():
        if name in catalogue["left_out"]:
            continue
        secret = any(fnmatchcase(name.upper(), pattern) for pattern in catalogue["withheld"])
        environment[name] = catalogue["withheld_value"] if secret else value
        if secret:
            withheld.append(name)
    environment.update({entry["name"]: entry["value"] for entry in catalogue["set"]})
    return environment, tuple(withheld)


@cache
def _catalogue() -> dict[str, Any]:
    path = Path(__file__).with_suffix(".toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))
