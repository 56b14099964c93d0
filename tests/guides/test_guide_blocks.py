"""No block of a guide is forgotten: a test executes it, or `blocks.toml` gives the reason why none does."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from epochzero.check.settings import read_settings
from epochzero.run.observers.progress_reports import ProgressFileWatcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.identity import PROGRESS_FILE
from epochzero.run.records.model import JobProgress
from epochzero.study.labelling.scheme import load_scheme
from epochzero.web.provider import read_provider
from tests.guides.test_guide_commands import BLOCK, COMMAND, PAGES, ROOT, TABLES

INSTALL = re.compile(
    r"(?:- )?pip install (?:'?\.(?:/models)?(?:\[[a-z,]+\])?'?(?: |$)|epochzero(?: |$))"
)
SCREEN = "text"
"""The language of what commands print: of it, only the lines with a prompt are commands."""


def others(page: str) -> list[str]:
    """Each block of a page by its first line that is neither a command of `epochzero` nor the installation."""
    name = "README.md" if page == "README" else f"docs/{page}.md"
    found = []
    for block in BLOCK.finditer((ROOT / name).read_text(encoding="utf-8")):
        if block[1] in ("python", "{toctree}"):
            continue
        lines = (block[2] or block[3]).replace("\\\n", " ").splitlines()
        # A list in a list is indented as a block is.
        if block[1] is None and lines[0].startswith("    - "):
            continue
        texts = [line.removeprefix("    ") if block[1] is None else line for line in lines]
        rest = [
            text
            for text in texts
            if text.strip()
            and not COMMAND.match(text.strip())
            and not INSTALL.match(text.strip())
            and (block[1] != SCREEN or text.startswith("$ "))
        ]
        if rest and not rest[0].startswith("$ cd lab"):  # tests/test_readme.py
            found.append(rest[0])
    return found


def test_each_block_is_executed_or_has_a_reason() -> None:
    keys = [*TABLES["executed"], *TABLES["not_executed"]]
    unused = set(keys)
    missing = []
    for page in [*PAGES, "README"]:
        for line in others(page):
            matching = [key for key in keys if f"{page}: {line}".startswith(key)]
            unused -= set(matching)
            if not matching:
                missing.append(f"{page}: {line}")
    assert (missing, unused) == ([], set())


def test_the_tests_that_execute_a_block_exist() -> None:
    for place in TABLES["executed"].values():
        file, _, name = place.partition(": ")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert " " in name or name in text, place


def test_what_pip_installs_is_a_distribution_of_the_repository_with_these_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    named = {
        extra
        for page in PAGES
        for found in re.findall(r"pip install [^\n]*?\.\[([a-z,]+)\]", _text(page))
        for extra in found.split(",")
    }
    assert named > {"serve", "study"}
    assert named <= extras


def _text(page: str) -> str:
    return (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")


def test_the_targets_of_make_exist() -> None:
    names = {
        name
        for text in (_text("start"), (ROOT / "README.md").read_text(encoding="utf-8"))
        for name in re.findall(r"(?m)^    make (\w+)", text)
    }
    assert names >= {"demo", "quick", "test"}
    for name in names:
        subprocess.run(["make", "-n", name], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_after_the_line_for_it(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (line,) = re.findall(rf"(?m)^    (.*={shell}_source epochzero.*?)  ", _text("install"))
    begin = "autoload -Uz compinit && compinit -u -d ./dump; " if shell == "zsh" else ""
    ask = {
        "bash": "complete -p epochzero",
        "zsh": "print $_comps[epochzero]",
        "fish": "complete --command epochzero",
    }
    (tmp_path / "epochzero").write_text(f'#!/bin/sh\nexec {sys.executable} -m epochzero "$@"\n')
    (tmp_path / "epochzero").chmod(0o755)
    script = f"{begin}{line}\n{ask[shell]}"
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [shell, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_epochzero_completion" in done.stdout
    assert done.stderr == ""


def test_the_settings_of_a_page_are_read(tmp_path: Path) -> None:
    (tmp_path / "client-secret").write_text("x")
    for page, read in {
        "label": lambda path: load_scheme(str(path)),
        "serve": read_provider,
    }.items():
        (text,) = re.findall(r"(?ms)^```toml\n(.*?)^```$", _text(page))
        (path := tmp_path / f"{page}.toml").write_text(text)
        assert read(path)


def test_the_data_of_a_check_are_set(tmp_path: Path) -> None:
    (block,) = re.findall(r"(?m)^    \[\[tool.*\n(?:    .*\n)+", _text("check"))
    (tmp_path / "pyproject.toml").write_text(textwrap.dedent(block))
    (data,) = read_settings(tmp_path).data
    assert (data.path, data.profile) == ("data/train.csv", "train.profile.json")


def test_a_line_of_progress_is_read(tmp_path: Path) -> None:
    (line,) = re.findall(r"(?ms)^```json\n(.*?)^```$", _text("integrations"))
    (tmp_path / PROGRESS_FILE).write_text(line)
    watcher = ProgressFileWatcher()
    list(watcher.started(1, tmp_path, Clock()))
    (record,) = watcher.ended()
    assert isinstance(record, JobProgress)
    assert (record.step, record.steps, record.loss) == (1200, 10000, 0.31)
