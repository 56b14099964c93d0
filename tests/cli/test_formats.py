"""The output formats: every command offers those that write its report, and one file is all that one needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from epochzero.cli import formats as package
from epochzero.cli.formats import Kind, OutputFormat, formats, names_of

if TYPE_CHECKING:
    from conftest import Command

LOUD = """
from epochzero.cli.formats import OutputFormat


class _Loud(OutputFormat):
    def ranking(self, found, *, explain):
        print("LOUD", found.level)


FORMAT = _Loud()
"""


def test_every_command_offers_the_formats_that_write_its_report() -> None:
    expected: dict[Kind, set[str]] = {
        "findings": {"github", "gitlab", "json", "markdown", "sarif"},
        "diagnoses": {"github", "json", "jsonl", "markdown", "sarif"},
        "ranking": {"json", "markdown", "sarif"},
        "jobs": {"json", "jsonl"},
    }
    for kind, known in expected.items():
        default, *others = names_of(kind)
        assert default == "text"
        assert others == sorted(others)
        assert known <= {*others}
    assert "jsonl" not in names_of("ranking")


def test_a_format_writes_nothing_by_itself() -> None:
    for write in (
        lambda: OutputFormat().findings(None, folder=Path(), verbose=False, seconds=0.0),  # type: ignore[arg-type]
        lambda: OutputFormat().diagnoses((), top=1, many=False),
        lambda: OutputFormat().ranking(None, explain=False),  # type: ignore[arg-type]
        lambda: OutputFormat().jobs(()),
    ):
        with pytest.raises(NotImplementedError):
            write()


@pytest.fixture
def loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A format that exists only in a file of its own."""
    (tmp_path / "loud.py").write_text(LOUD)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    formats.cache_clear()
    yield
    monkeypatch.undo()
    formats.cache_clear()


@pytest.mark.usefixtures("loud")
def test_one_file_is_all_that_a_format_needs() -> None:
    assert "loud" in names_of("ranking")
    assert "loud" not in names_of("findings")


def test_the_help_lists_the_formats(run: Command) -> None:
    assert f"[{'|'.join(names_of('ranking'))}]" in "".join(run("locate", "--help").out.split())


def test_a_merge_request_of_gitlab_shows_what_is_new(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fields of GitLab's documentation; a finding that only moved is not a new one."""
    monkeypatch.chdir(tmp_path)

    def issues(program: str) -> list[dict[str, Any]]:
        (tmp_path / "train.py").write_text(program)
        found = run("check", "--format", "gitlab", "--", "python", "train.py")
        read: list[dict[str, Any]] = json.loads(found.out)
        assert found.code == bool(read)
        return read

    (first,) = issues("rates = {'adam': 0.1}\nprint(rates['sgd'])\n")
    assert first["severity"] == "critical"
    assert first["check_name"] == "key-missing"
    assert first["location"] == {"path": "train.py", "lines": {"begin": 2}}
    assert "KeyError: 'sgd'" in first["description"]
    (moved,) = issues("rates = {'adam': 0.1}\n\n\nprint(rates['sgd'])\n")
    assert moved["location"]["lines"] == {"begin": 4}
    assert moved["fingerprint"] == first["fingerprint"]
    assert issues("print('trained')\n") == []
