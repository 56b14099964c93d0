"""``epochzero doctor`` and ``epochzero`` alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from epochzero.doctor import capabilities


def epochzero(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "epochzero", *arguments], capture_output=True, text=True, check=False
    )


def test_without_a_command_three_are_named() -> None:
    done = epochzero()
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("diagnose train.log", "check -- python train.py", "run -- python train.py"):
        assert f"epochzero {command}" in done.stdout
    assert len(done.stdout.splitlines()) < 10


def test_each_capability_has_a_state_and_advice_if_it_can_be_had() -> None:
    done = epochzero("doctor", "--format", "json")
    assert done.returncode == 0
    found = {one["name"]: one for one in json.loads(done.stdout)}
    assert {one["state"] for one in found.values()} <= {"works", "limited", "missing"}
    assert found["system"]["text"].startswith("Linux, Python 3.")
    assert all(one["text"].endswith(".") for one in found.values())


def test_a_program_that_is_absent_is_named(tmp_path: Path) -> None:
    found = {one.name: one for one in capabilities({"PATH": ""}, [tmp_path / "home"])}
    assert str(tmp_path / "home") in found["running jobs"].text
    assert not (tmp_path / "home").exists()
    assert found["git"].state == "missing"


def test_an_extra_that_is_absent_says_how_to_install_it() -> None:
    from epochzero import doctor

    one = doctor._extra("a thing", "thing", ("no_such_module",))
    assert (one.state, one.advice) == ("missing", "pip install 'epochzero[thing]'.")
