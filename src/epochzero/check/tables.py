"""The catalogues of this package: TOML files next to the modules that use them."""

import tomllib
from importlib.resources import files
from typing import Any


def read_table(package: str, name: str) -> dict[str, Any]:
    """The content of a package's TOML file."""
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
