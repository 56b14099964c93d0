"""SARIF of findings, rankings and diagnoses, and what VS Code's problem matcher reads of a check."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Command, Made

GUIDE = (Path(__file__).parents[2] / "docs/editor.md").read_text(encoding="utf-8")
LOG = """\
Traceback (most recent call last):
  File "/work dir/train.py", line 7, in <module>
    main()
  File "/work dir/model.py", line 3, in main
    return rows[9]
IndexError: list index out of range
"""
WRONG = "print('%d of %d' % (1,))\n"
WRONG_TOO = "print('%d of %d' % (1, 2, 3))\n"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job with two wrong lines, in a module that it imports."""
    (tmp_path / "train.py").write_text("import helper\n\nhelper.run()\n")
    (tmp_path / "helper.py").write_text(f"def run():\n    {WRONG}    {WRONG_TOO}")
    (tmp_path / "cluster.toml").write_text('format = 1\nname = "cluster"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(run: Command) -> dict[str, Any]:
    ran = run("check", "-f", "sarif", "--target", "cluster.toml", "--", "python", "train.py")
    return holds_what_the_standard_requires(ran.out)


def holds_what_the_standard_requires(text: str) -> dict[str, Any]:
    """The run of a log, after a look at the properties that SARIF 2.1.0 demands."""
    log = json.loads(text)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "EpochZero"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        for name in ("shortDescription", "fullDescription", "help"):
            assert rule[name]["text"], name
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        assert all(isinstance(one, str) for one in result["partialFingerprints"].values())
        assert result["locations"], "GitHub's code scanning rejects the file otherwise"
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            physical = place["physicalLocation"]
            assert re.fullmatch(r"[!-~]+", physical["artifactLocation"]["uri"])
            assert all(number >= 1 for number in physical.get("region", {}).values())
    return run  # type: ignore[no-any-return]


def test_a_finding_has_its_way_and_its_root(run: Command, job: Path) -> None:
    found = checked(run)
    first, second = found["results"]
    assert found["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{job.as_uri()}/"
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "helper.py"
    (related,) = first["relatedLocations"]
    assert related["physicalLocation"]["region"]["startLine"] == 3
    assert related["message"]["text"]
    assert first["partialFingerprints"] != second["partialFingerprints"]


def test_a_fingerprint_stays_when_lines_come_above(run: Command, job: Path) -> None:
    before = [result["partialFingerprints"] for result in checked(run)["results"]]
    (job / "helper.py").write_text(f"# New.\n{(job / 'helper.py').read_text()}")
    assert [result["partialFingerprints"] for result in checked(run)["results"]] == before


def test_a_ranking(run: Command, made: Made) -> None:
    made.write("src/my loader.py", "def read_shard(name):\n    raise ValueError('cut off')\n")
    made.commit()
    (made.folder / "issue.md").write_text("read_shard fails")
    ran = run("locate", made.folder / "issue.md", "--repo", made.folder, "-f", "sarif",
              "--level", "function", "--no-cache")  # fmt: skip
    (result,) = holds_what_the_standard_requires(ran.out)["results"]
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "src/my%20loader.py"
    assert place["physicalLocation"]["region"] == {"startLine": 1, "endLine": 2}


def test_a_failure_lies_in_the_users_code(run: Command, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "good.log").write_text("epoch 1 done\n")
    ran = run("diagnose", "--each", tmp_path / "a.log", tmp_path / "good.log", "-f", "sarif")
    (result,) = holds_what_the_standard_requires(ran.out)["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "file:///work%20dir/model.py"
    assert physical["region"] == {"startLine": 3}
    told = [place["message"]["text"] for place in result["relatedLocations"]]
    assert told == ["The log", "In main", "In <module>"]
    assert "IndexError" in result["message"]["text"]


def test_a_failure_without_a_line_of_code_lies_in_the_log(run: Command, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0\n")
    ran = run("diagnose", tmp_path / "a.log", "-f", "sarif")
    (result,) = holds_what_the_standard_requires(ran.out)["results"]
    (place,) = result["locations"]
    assert place["physicalLocation"]["region"] == {"startLine": 1}


def test_a_failure_that_no_line_shows_lies_in_its_file(run: Command, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("epoch 1 loss 0.3\nexit code 137\n")
    ran = run("diagnose", tmp_path / "a.log", "--exit-code", "137", "-f", "sarif")
    (result,) = holds_what_the_standard_requires(ran.out)["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == (tmp_path / "a.log").as_uri()


def test_a_finding_of_the_command_line_lies_in_the_program(run: Command, job: Path) -> None:
    (job / "helper.py").write_text("def run(): pass\n")
    (job / "train.py").write_text(
        "import argparse\nargparse.ArgumentParser().parse_args()\nimport helper\n"
    )
    ran = run("check", "-f", "sarif", "--", "python", "train.py", "--epochs", "3")
    (result,) = holds_what_the_standard_requires(ran.out)["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "train.py"


def test_the_problem_matcher_of_the_guide_reads_a_check(run: Command, job: Path) -> None:
    (task,) = json.loads(re.findall(r"(?ms)^```json\n(.*?)^```$", GUIDE)[0])["tasks"]
    assert task["command"] == "epochzero"
    lines = run(*task["args"]).out.splitlines()
    patterns = [re.compile(part["regexp"]) for part in task["problemMatcher"]["pattern"]]
    found = []
    for three in zip(lines, lines[1:], lines[2:], strict=False):
        matches = [pattern.search(line) for pattern, line in zip(patterns, three, strict=True)]
        if all(matches):
            head, _, wrong = matches
            assert head is not None
            assert wrong is not None
            found.append((*head.groups(), wrong[1]))
    assert [one[:5] for one in found] == [
        ("helper.py", str(line), "11", "error", "format-arguments") for line in (2, 3)
    ]
    assert all(one[5].startswith("The number of placeholders (2)") for one in found)
