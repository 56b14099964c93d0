"""The commands of the README print what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCREENS = re.findall(
    r"(?ms)^```text\n\$ (.+?)\n\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8")
)
USED = ("lab/check/failing/test_split_was_not_uploaded", "lab/check/targets", "lab/demo",
        "lab/logs/ranks_missing_shard")  # fmt: skip
# A Python from 3.13 on marks more lines of a stack.
CHANGES_EACH_TIME = re.compile(
    r"\d+(\.\d+)? (s|GPU hours|rules)\b|(?<=epochzero show )\w+|\S*(?=/lab/demo/train\.py)|(?<=output\.log:)\d+"
)


def test_there_are_three_screens() -> None:
    assert len(SCREENS) == 3


@pytest.mark.parametrize(("command", "screen"), SCREENS, ids=["check", "run", "diagnose"])
def test_the_readme_shows_what_the_command_prints(
    tmp_path: Path, command: str, screen: str
) -> None:
    for name in USED:
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    for name in ("python", "epochzero"):
        module = "-m epochzero" if name == "epochzero" else ""
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
        script.chmod(0o755)
    environment = {
        **os.environ,
        "EPOCHZERO_HOME": str(tmp_path / "home"),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    }
    printed = subprocess.run(
        command,
        shell=True,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout
    # A screen that starts with "..." shows the end of what is printed.
    shown = CHANGES_EACH_TIME.sub("#", screen.removeprefix("...\n")).splitlines()
    assert CHANGES_EACH_TIME.sub("#", printed).splitlines()[-len(shown) :] == shown
