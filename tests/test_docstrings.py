"""The examples in docstrings print what they promise."""

from __future__ import annotations

import doctest
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.catalogs import every

ROOT = Path(__file__).resolve().parent.parent
# Only modules that have an example: to import all of them, and to look for the line of each function in
# them, takes a minute.
MODULES = sorted(
    path.relative_to(source).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for source in (ROOT / "src", ROOT / "models" / "src")
    for path in source.rglob("*.py")
    # alembic runs its own one by itself.
    if path.name not in ("__main__.py", "env.py") and ">>> " in path.read_text(encoding="utf-8")
)

FRAMEWORKS = ("keras", "lightning", "transformers")


@every("module", MODULES)
def test_examples_in_docstrings(module: str) -> None:
    room, _, framework = module.rpartition(".")
    if room == "epochzero.integrations" and framework in FRAMEWORKS and not find_spec(framework):
        pytest.skip(f"what a callback for {framework} is can be told with {framework} only")
    assert doctest.testmod(import_module(module)).failed == 0
