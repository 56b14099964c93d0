"""The settings of a project: what they may say, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check.settings import CheckSettings, read_settings
from epochzero.errors import InputError


def settings(folder: Path, text: str) -> CheckSettings:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return read_settings(folder)


def test_all_that_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_text("")
    found = settings(
        tmp_path,
        """
        [tool.epochzero.check]
        target = "cluster.toml"
        select = ["undefined-name"]
        ignore = ["module-missing"]
        exclude = ["third_party"]
        [tool.epochzero.check.per-file-ignores]
        "old/*.py" = ["syntax-error"]
        """,
    )
    assert found == CheckSettings(
        target=str(tmp_path / "cluster.toml"),
        select=("undefined-name",),
        ignore=("module-missing",),
        per_file_ignores={"old/*.py": ("syntax-error",)},
        exclude=("third_party",),
    )


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'\n", "[tool.ruff]\nselect = ['E']\n"])
def test_nothing_needs_to_be_set(tmp_path: Path, text: str) -> None:
    assert settings(tmp_path, text) == CheckSettings()
    (tmp_path / "pyproject.toml").unlink()
    assert read_settings(tmp_path) == CheckSettings()


def test_a_preset_is_no_path(tmp_path: Path) -> None:
    assert settings(tmp_path, "[tool.epochzero.check]\ntarget = 'a100'\n").target == "a100"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("selct = ['undefined-name']", "unknown key selct; did you mean select?"),
        ("colour = 1", "unknown key colour; it may have target, select"),
        ("select = 'undefined-name'", "select must be a list of strings"),
        ("ignore = [1]", "ignore must be a list of strings"),
        ("target = 3", "target must be a string"),
        ("select = ['undefined-nam']", "select: no rule has the id 'undefined-nam'; did you mean"),
        ("per-file-ignores = ['x']", "per-file-ignores must be a table"),
        ("per-file-ignores = {'a.py' = 'x'}", "per-file-ignores.a.py must be a list"),
        ("per-file-ignores = {'a.py' = ['x']}", "per-file-ignores.a.py: no rule has the id 'x'"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        settings(tmp_path, f"[tool.epochzero.check]\n{text}\n")
    assert str(tmp_path / "pyproject.toml") in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["[tool", "x = \xff", "tool = 3", "[tool]\nepochzero = 'x'", "[tool.epochzero]\ncheck = 1"],
)
def test_a_file_that_is_no_settings(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"pyproject\.toml"):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("old/a.py", True),
        ("old/deep/a.py", True),
        ("new/a.py", False),
        ("third_party/x.py", True),
        ("src/third_party/x.py", False),
        ("third_party.py", False),
    ],
)
def test_patterns_fit_files_and_the_folders_above_them(path: str, left: bool) -> None:
    given = CheckSettings(per_file_ignores={"old/*": ("syntax-error",)}, exclude=("third_party/",))
    assert bool(given.reason_to_leave("syntax-error", path)) is left
    assert bool(given.reason_to_leave("undefined-name", path)) is (left and "old" not in path)
