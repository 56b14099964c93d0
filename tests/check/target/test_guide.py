"""What docs/target.md says is true."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from epochzero.check.target import parse_target, read_target, write_target
from epochzero.check.target.model import GPU, Distribution, Mount, NetworkAccess, Target, User

OF_THIS_MACHINE = ("here", "ports")
"""What no file says: it is asked when a job is checked on the machine on which it would run."""


def guide(repository: Path) -> str:
    return (repository / "docs/target.md").read_text(encoding="utf-8")


def test_the_example_is_read(repository: Path, tmp_path: Path) -> None:
    (example,) = re.findall(r"(?ms)^~~~toml\n(.*?)^~~~$", guide(repository))
    path = tmp_path / "example.toml"
    path.write_text(example)
    (tmp_path / "requirements.lock").write_text("numpy==1.26.4\n")
    target = read_target(path)
    assert parse_target(write_target(target)) == target
    for field in fields(Target):
        if field.name not in OF_THIS_MACHINE:
            assert getattr(target, field.name) not in (None, "", ()), field.name


def test_every_key_is_named(repository: Path) -> None:
    text = guide(repository)
    for described in (Target, GPU, Mount, NetworkAccess, User, Distribution):
        for field in fields(described):
            if described is Target and field.name in OF_THIS_MACHINE:
                continue
            if (described, field.name) != (Distribution, "name"):
                assert f"`{field.name}`" in text, field.name
