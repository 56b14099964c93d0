"""A Python of this machine, read without running it."""

from __future__ import annotations

import os
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from click.testing import CliRunner

from epochzero.check.target import parse_target, read_interpreter
from epochzero.cli.target import command
from epochzero.errors import InputError


def test_an_environment(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (tmp_path / "sources").mkdir()
    (site / "added.pth").write_text(f"# why\nimport os\n{tmp_path}/sources\nnot/there\n")
    found = read_interpreter(tmp_path / "env/bin/python")
    assert found.version == sys.version_info[:3]
    assert found.folders == (str(site), str(tmp_path / "sources"))


def test_an_environment_that_sees_the_packages_of_the_system(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False, system_site_packages=True)
    own = tmp_path / "home/.local/lib" / f"python{sysconfig.get_python_version()}/site-packages"
    own.mkdir(parents=True)
    found = read_interpreter(tmp_path / "env/bin/python", home=str(tmp_path / "home"))
    assert str(own) in found.folders
    assert len(found.folders) > 2


def test_the_version_stands_in_the_header_or_the_program_where_no_environment_says_it(
    tmp_path: Path,
) -> None:
    program = tmp_path / "bin/python3.12"
    program.parent.mkdir()
    program.write_bytes(b"\x7fELF\0x\x003.12.9\0")
    (tmp_path / "bin/python").symlink_to("python3.12")
    (tmp_path / "lib/python3.12/site-packages").mkdir(parents=True)
    found = read_interpreter(tmp_path / "bin/python")
    assert found.version == (3, 12, 9)
    assert found.folders == (str(tmp_path / "lib/python3.12/site-packages"),)
    header = tmp_path / "include/python3.12/patchlevel.h"
    header.parent.mkdir(parents=True)
    header.write_text('#define PY_VERSION "3.12.10"\n')
    assert read_interpreter(tmp_path / "bin/python").version == (3, 12, 10)


@pytest.mark.parametrize("name", ["nowhere", "folder", "ls"])
def test_what_is_no_python(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "ls").write_text("")
    with pytest.raises(InputError, match=name):
        read_interpreter(tmp_path / name)


def test_a_target_of_another_python(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    python = os.fspath(tmp_path / "env/bin/python")
    made = CliRunner().invoke(command, ["capture", "--python", python])
    assert made.exit_code == 0
    target = parse_target(made.stdout)
    assert target.python == sys.version_info[:3]
    assert not target.distributions
