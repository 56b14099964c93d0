"""Issues and the commits that fixed them, in a made repository."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.errors import InputError
from epochzero.study.importing import Imported, import_reports
from epochzero.study.importing.issues import Issue, read_issues
from epochzero.study.importing.links import CandidateCommit, links

OPENED, CLOSED = "2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z"
DURING = "2024-01-20T12:00:00 +0000"
CODE = "class Net:\n    def forward(self, x):\n        return x\n\n\ndef main():\n    Net()\n"


class Made:
    """A repository with commits, and an export of issues."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "owner+tool"
        self.clone.mkdir()
        self.export = folder / "issues.json"
        self.issues: list[dict[str, Any]] = []
        self._git("init", "-q", "-b", "main")
        self.commit("begin", {"net.py": CODE}, "2023-12-01T00:00:00 +0000")

    def commit(self, message: str, files: dict[str, str], when: str = DURING) -> str:
        for name, text in files.items():
            (self.clone / name).parent.mkdir(exist_ok=True)
            (self.clone / name).write_text(text)
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", message, when=when)
        return self._git("rev-parse", "HEAD").strip()

    def issue(self, number: int, **fields: Any) -> None:
        given = {"title": f"issue {number}", "body": "", "createdAt": OPENED, "closedAt": CLOSED}
        self.issues.append({"number": number, **given, **fields})

    def imported(self, **options: Any) -> Imported:
        self.export.write_text(json.dumps(self.issues))
        return import_reports(self.export, self.clone, **options)

    def _git(self, *arguments: str, when: str = DURING) -> str:
        person = {
            f"GIT_{who}_{what}": "a"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        return subprocess.run(
            ["git", *arguments], cwd=self.clone, check=True, capture_output=True, text=True,
            env={"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", **person, **dates},
        ).stdout  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_a_commit_that_closes_an_issue_is_its_fix(made: Made) -> None:
    made.issue(7, title="Wrong result", labels=[{"name": "bug"}])
    sha = made.commit("Fixes #7: one more", {"net.py": CODE.replace("return x", "return x + 1")})
    record = made.imported().records[0]
    assert record["id"] == "owner+tool#7"
    assert record["link"] == {"rule": "commit_closes", "certainty": "high", "others": []}
    assert record["fix"]["sha"] == sha
    (file,) = record["fix"]["files"]
    assert (file["change"], file["old"], file["new"]) == ("MODIFY", "net.py", "net.py")
    assert file["methods"] == [
        {"name": "forward", "start": 2, "end": 3, "added": [3], "deleted": [3]}
    ]
    assert file["added"] == file["deleted"] == []


def test_renames_additions_and_deletions_are_told(made: Made) -> None:
    made.commit("more", {"old.py": "x = 1\n" * 9}, "2023-12-02T00:00:00 +0000")
    made.issue(7)
    (made.clone / "old.py").rename(made.clone / "new.py")
    (made.clone / "net.py").unlink()
    made.commit("resolve gh-7", {"added.py": "def f():\n    pass\n"})
    (record,) = made.imported().records
    files = {(file["change"], file["old"], file["new"]) for file in record["fix"]["files"]}
    assert files == {
        ("ADD", None, "added.py"), ("DELETE", "net.py", None), ("RENAME", "old.py", "new.py"),
    }  # fmt: skip


def test_a_pull_request_that_closes_an_issue_leads_to_its_commit(made: Made) -> None:
    made.issue(7)
    made.issue(
        8, title="Better", body="Closes https://github.com/owner/tool/issues/7", mergedAt=CLOSED
    )
    sha = made.commit("Better (#8)", {"net.py": CODE + "\n"})
    (record,) = made.imported().records
    assert record["fix"]["sha"] == sha
    assert record["link"]["rule"] == "pull_request_closes"


@pytest.mark.parametrize(
    ("message", "fields", "reason"),
    [
        ("Fixes #7", {"closedAt": None}, "it is still open"),
        ("Fixes #7", {"stateReason": "NOT_PLANNED"}, "it was closed as not planned"),
        ("Fixes #7", {"labels": ["enhancement"]}, "labeled as something other than a bug"),
        ("See #7", {}, "no commit is linked to it"),
        ("Fixes other/project#7", {}, "no commit is linked to it"),
        ("Fixes #77", {}, "no commit is linked to it"),
        ("Fixes #7", {"createdAt": "2024-01-25T00:00:00Z"}, "no commit is linked to it"),
        ("Fixes #7", {"closedAt": "2023-12-10T00:00:00Z", "createdAt": OPENED}, "no commit is linked to it"),
    ],
)  # fmt: skip
def test_why_an_issue_is_left_out(
    made: Made, message: str, fields: dict[str, Any], reason: str
) -> None:
    made.issue(7, **fields)
    made.commit(message, {"net.py": CODE + "\n"})
    imported = made.imported()
    assert not imported.records
    assert imported.left_out == {reason: 1}


def test_what_changes_no_code_is_no_fix(made: Made) -> None:
    made.issue(7)
    made.commit("Fixes #7", {"README.md": "more", "tests/test_net.py": "pass\n"})
    assert list(made.imported().left_out) == [
        "its commit changes only tests, documentation or data"
    ]
    sha = made.commit("Fix the rest of #7", {"net.py": CODE + "\n"})
    (record,) = made.imported().records
    assert record["fix"]["sha"] == sha
    assert record["link"]["certainty"] == "medium"


def test_a_commit_of_very_many_files_is_no_fix(made: Made) -> None:
    made.issue(7)
    made.commit("Fixes #7", {f"m{number}.py": "x = 1\n" for number in range(101)})
    assert list(made.imported().left_out) == ["its commit changes more than 100 files"]


def test_words_in_common_count_only_when_asked_for(made: Made) -> None:
    made.issue(7, title="Loader drops last batch silently", closedAt="2024-01-21T00:00:00Z")
    made.commit("Fix loader which drops the last batch", {"net.py": CODE + "\n"})
    assert not made.imported().records
    (record,) = made.imported(loose=True).records
    assert record["link"]["certainty"] == "low"


def test_strange_entries_are_counted(tmp_path: Path) -> None:
    export = tmp_path / "issues.jsonl"
    entries = [{"number": 1, "title": "a"}, {"number": 1, "title": "b"}, {"title": "c"}, 7, None]
    export.write_text("\n".join(map(json.dumps, entries)))
    issues, left_out = read_issues(export)
    assert [issue.title for issue in issues] == ["a"]
    assert left_out == {"no number or no title": 3, "a duplicate number": 1}


def test_a_line_separator_of_unicode_ends_no_line(tmp_path: Path) -> None:
    export = tmp_path / "issues.jsonl"
    export.write_text('{"number": 1, "title": "a\u2028b\x85c"}\n{"number": 2, "title": "d"}\n')
    issues, left_out = read_issues(export)
    assert [issue.title for issue in issues] == ["a\u2028b\x85c", "d"]
    assert not left_out


@pytest.mark.parametrize("text", ["", "[]", "[", "{", "no json", '"word"', "[[[]]]", "[" * 100_000])
def test_a_file_without_issues_is_an_error(tmp_path: Path, text: str) -> None:
    export = tmp_path / "issues.json"
    export.write_text(text)
    with pytest.raises(InputError, match=r"issues\.json"):
        read_issues(export)


@given(st.text(), st.integers(0, 10**7 - 1))
def test_any_message_is_read(message: str, number: int) -> None:
    issue = Issue(number, "title", "", 0.0, 100.0)
    commits = [CandidateCommit("a" * 40, 50.0, 1, f"{message} fixes #{number}")]
    assert set(links([issue], commits, "owner/name")) == {number}
