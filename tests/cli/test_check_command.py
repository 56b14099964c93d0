"""``epochzero check``: what it prints, in which forms, and how it ends."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from epochzero import taxonomy
from epochzero.check import findings
from epochzero.check.findings import Finding, SourceLocation, Unknown
from epochzero.check.result import SCHEMA, CheckResult
from epochzero.check.rules import builtin, others
from epochzero.cli.formats import formats, names_of

if TYPE_CHECKING:
    from conftest import Command

CHECK = Path(findings.__file__).parent
TARGET = """\
format = 1
name = "cluster"
python = "3.11.4"

[distributions.numpy]
version = "2.1.0"
modules = ["numpy"]
"""
TRAIN = """\
import helper

def main():
    helper.run(3)

if __name__ == "__main__":
    main()
"""
HELPER = """\
import yaml

def run(epochs):
    print("%d of %d" % (epochs,))
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a job that fails, in which the command is given."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "cluster.toml").write_text(TARGET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMAND = ("--target", "cluster.toml", "--", "python", "train.py")


def test_text_groups_by_file_and_says_what_why_and_how(run: Command, job: Path) -> None:
    ran = run("check", *COMMAND)
    assert (ran.code, ran.err) == (1, "")
    lines = ran.out.splitlines()
    assert lines[0] == "helper.py"
    assert lines[1].startswith("helper.py:1:1  error  module-missing  Library Not Found")
    assert lines[2].strip() == "import yaml"
    assert "No module named 'yaml'" in ran.out
    assert "Via         train.py:1" in ran.out
    assert "helper.py:4" in ran.out
    assert lines[-1].startswith("WOULD FAIL  2 errors, 0 warnings")
    assert "1 job on cluster" in lines[-1]
    assert "2 files" in lines[-1]


def test_the_command_needs_no_dashes(run: Command, job: Path) -> None:
    with_dashes = run("check", *COMMAND).out.splitlines()
    without = run("check", "--target", "cluster.toml", "python", "train.py").out.splitlines()
    assert with_dashes[:-1] == without[:-1]


def test_options_of_the_job_are_its_own(run: Command, job: Path) -> None:
    ran = run("check", "--target", "cluster.toml", "python", "train.py", "--format", "odd")
    assert "Invalid value" not in ran.err


def test_exit_codes(run: Command, job: Path) -> None:
    assert run("check", *COMMAND).code == 1
    assert run("check", "--ignore", "module-missing,format-arguments", *COMMAND).code == 0
    (job / "helper.py").write_text(
        "def run(epochs):  # epochzero: ignore[undefined-name] not needed\n    pass\n"
    )
    ran = run("check", *COMMAND)
    assert (ran.code, "WARNINGS" in ran.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Usage"),
        (("--target", "cluster.toml"), "missing command"),
        (("--", "python", "missing.py"), "missing.py"),
        (("--target", "nowhere.toml", "--", "python", "train.py"), "nowhere.toml"),
        (("--select", "undefined-nam", *COMMAND), "did you mean undefined-name"),
        (("--select", "", *COMMAND), "contains no rule"),
        (("--ignore", " , ", *COMMAND), "contains no rule"),
        (("--chdir", "nowhere", *COMMAND), "nowhere"),
        (("--odd", *COMMAND), "--odd"),
    ],
)
def test_what_cannot_be_used(
    run: Command, job: Path, arguments: tuple[str, ...], said: str
) -> None:
    ran = run("check", *arguments)
    assert ran.code == 2
    assert said in ran.err + ran.out


def test_select_and_ignore(run: Command, job: Path) -> None:
    for options in (("--select", "format-arguments"), ("--ignore", "module-missing")):
        found = json.loads(run("check", *options, "-f", "json", *COMMAND).out)
        assert [one["rule"] for one in found["findings"]] == ["format-arguments"]


def test_settings_of_the_project(run: Command, job: Path) -> None:
    (job / "pyproject.toml").write_text(
        '[tool.epochzero.check]\ntarget = "cluster.toml"\nignore = ["format-arguments"]\n'
        '[tool.epochzero.check.per-file-ignores]\n"helper.py" = ["module-missing"]\n'
    )
    found = json.loads(run("check", "-f", "json", "--", "python", "train.py").out)
    assert found["findings"] == []
    assert [one[0]["rule"] for one in found["suppressed"]] == ["module-missing"]


def test_paths_are_seen_from_where_the_command_is_given(
    run: Command, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path.parent)
    name = tmp_path.name
    arguments = ("--chdir", name, "--target", f"{name}/cluster.toml", "--", "python", "train.py")
    assert run("check", *arguments).out.startswith(f"{name}/helper.py\n")
    assert f"file={name}/helper.py" in run("check", "-f", "github", *arguments).out
    assert json.loads(run("check", "-f", "json", *arguments).out)["findings"][0]["place"][
        "path"
    ] == ("helper.py")


def test_json(run: Command, job: Path) -> None:
    found = json.loads(run("check", "-f", "json", *COMMAND).out)
    assert found["schema"] == SCHEMA == "epochzero.findings/1"
    assert found["jobs"] == ["python train.py"]
    assert found["files"] == 2
    first = found["findings"][0]
    assert (first["rule"], first["severity"], first["category"]) == (
        "module-missing",
        "error",
        "library_not_found",
    )
    assert (first["place"]["path"], first["place"]["line"]) == ("helper.py", 1)
    assert first["via"][0]["path"] == "train.py"


def test_sarif_has_what_the_standard_requires(run: Command, job: Path) -> None:
    found = json.loads(run("check", "-f", "sarif", *COMMAND).out)
    assert found["version"] == "2.1.0"
    (one,) = found["runs"]
    rules = one["tool"]["driver"]["rules"]
    assert one["tool"]["driver"]["name"] == "EpochZero"
    assert {rule["id"] for rule in rules} >= {rule.id for rule in builtin()}
    for rule in rules:
        assert rule["shortDescription"]["text"]
    assert len(one["results"]) == 2
    for result in one["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning")
        assert result["message"]["text"]
        physical = result["locations"][0]["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == "helper.py"
        assert physical["region"]["startLine"] in (1, 4)


def test_github_annotates_the_line(run: Command, job: Path) -> None:
    first, *_ = run("check", "-f", "github", *COMMAND).out.splitlines()
    assert first.startswith("::error ")
    properties, _, message = first.removeprefix("::error ").partition("::")
    assert {"file=helper.py", "line=1", "col=1"} <= set(properties.split(","))
    assert "ModuleNotFoundError" in message


def test_a_command_of_which_nothing_can_be_checked_is_no_success(run: Command, job: Path) -> None:
    ran = run("check", "--", "python", "-")
    assert ran.code == 2
    assert ran.out.splitlines()[-1].startswith("NOT CHECKED  0 errors")


def test_rules_are_listed_and_explained(run: Command) -> None:
    listed = run("check", "--rules")
    assert listed.code == 0
    for rule in builtin():
        assert rule.id in listed.out
        explained = run("explain", rule.id)
        assert explained.code == 0
        for text in (rule.title, rule.category, rule.source):
            assert text in explained.out
    assert "did you mean module-missing" in run("explain", "module-mising").err


def _ids() -> set[str]:
    """Ids that the source gives to findings: constants, and names of constants of their module."""
    found: set[str] = set()
    for path in CHECK.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if not made or node.func.id not in ("Finding", "replace"):
                continue
            given = [one.value for one in node.keywords if one.arg == "rule"]
            given += node.args[:1] if node.func.id == "Finding" else []
            for value in given:
                value = named.get(value.id, value) if isinstance(value, ast.Name) else value
                texts = (one for one in ast.walk(value) if isinstance(one, ast.Constant))
                found |= {one.value for one in texts if isinstance(one.value, str)}
    return found


def test_every_id_that_a_finding_can_carry_is_explained(run: Command) -> None:
    ids = _ids() | set(others())
    assert {"dry-run-crashed", "dry-run-memory", "suppression-unused", "data-differs"} <= ids
    for name in sorted(ids - {rule.id for rule in builtin()}):
        explained = run("explain", name)
        assert explained.code == 0, name
        assert explained.out.startswith(f"{others()[name].title} ({name})\n")
        assert others()[name].category in taxonomy.categories()


# -- The guide ---------------------------------------------------------------------------------

GUIDE = (Path(__file__).resolve().parents[2] / "docs/check.md").read_text(encoding="utf-8")
COMMANDS = [
    line.partition("  #")[0].strip().removeprefix("epochzero ")
    for line in re.findall(r"(?m)^    (epochzero .*)$", GUIDE)
]
EVALUATE = """\
import yaml

def evaluate():
    right = 3
    print("%d right of %d" % (right,))
"""
ENTRY = """\
import os

epochs = 3
os.makedirs("out", exist_ok=True)
import evaluate
evaluate.evaluate()
"""


@pytest.fixture
def guide_folder(job: Path) -> Path:
    """A folder with everything that the guide's commands name."""
    (job / "train.py").write_text(ENTRY)
    (job / "evaluate.py").write_text(EVALUATE)
    return job


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_guide(run: Command, guide_folder: Path, line: str) -> None:
    ran = run(*shlex.split(line))
    assert ran.code == (0 if "--rules" in line else 1) or "module-missing" not in ran.out
    assert ran.err == ""


def test_the_answer_in_the_guide(run: Command, guide_folder: Path) -> None:
    ((command, shown),) = re.findall(r"(?s)```text\n\$ epochzero (.*?)\n\n(.*?)```", GUIDE)
    changing = r"\d+ rules, \d+\.\d s$"
    printed = run(*shlex.split(command)).out
    assert re.sub(changing, "", printed.rstrip()) == re.sub(changing, "", shown.rstrip())


def test_the_settings_in_the_guide(run: Command, guide_folder: Path) -> None:
    ((text),) = re.findall(r"(?ms)^```toml\n(.*?)^```$", GUIDE)
    (guide_folder / "pyproject.toml").write_text(text)
    ran = run("check", "--", "python", "train.py")
    assert (ran.code, ran.err) == (1, "")
    assert "on cluster" in ran.out


# -- Run dry -----------------------------------------------------------------------------------

DRY_SCRIPT = """\
import argparse

options = argparse.ArgumentParser().parse_args()
if options is None:
    model.load_state_dict({})
names = {"a": 1}
names["".join(["b"])]
"""


def test_a_dry_run_tells_how_far_it_came(run: Command, job: Path) -> None:
    (job / "train.py").write_text(DRY_SCRIPT)
    ran = run("check", "--dry", "--dry-time", "10", "--select", "dry-run-failed", "--", "python",
              "train.py")  # fmt: skip
    assert ran.code == 1
    assert "train.py:7:1  error  dry-run-failed  Key Not Found, in Initialization" in ran.out
    assert "Effect      KeyError: 'b'" in ran.out
    assert "DRY RUN  python train.py: failed" in ran.out
    assert "Reached     arguments\n" in ran.out
    assert "Not reached load: train.py:5, under if options is None" in ran.out


def test_a_dry_run_in_json(run: Command, job: Path) -> None:
    (job / "train.py").write_text(DRY_SCRIPT)
    ran = run("check", "--dry", "--format", "json", "--", "python", "train.py")
    (dry,) = json.loads(ran.out)["dry"]
    assert (dry["modes"], dry["ended"]) == (["real"], "failed")
    assert [(part["name"], part["reached"]) for part in dry["parts"]] == [
        ("arguments", True),
        ("load", False),
    ]


# -- Hostile text ------------------------------------------------------------------------------

EVIL = "a\x1b[31m\r\n::error::x %0A `] {0} <b> @team | \x07"


def evil(severity: Any = "error", path: str = "a,b:c\n.py") -> Finding:
    place = SourceLocation(path, 3, 1, EVIL)
    return Finding(
        "key-missing", severity, "path_not_found", "training", place, EVIL, EVIL, EVIL, (place,)
    )


@pytest.mark.parametrize("form", names_of("findings"))
def test_nothing_of_a_job_moves_the_cursor_or_becomes_markup(
    capsys: pytest.CaptureFixture[str], form: str
) -> None:
    unknowns = tuple(Unknown(EVIL, str(n), SourceLocation("<command>")) for n in range(9))
    finding = evil()
    found = CheckResult(
        (EVIL,), EVIL, (finding,), unknowns, ((finding, EVIL),), 1, ("key-missing",)
    )
    formats()[form].findings(found, folder=Path(), verbose=False, seconds=0.1)
    out = capsys.readouterr().out
    assert not {"\x1b", "\r", "\x07"} & set(out)
    if form == "github":
        (line,) = out.splitlines()
        assert line.startswith("::error title=key-missing (Path Not Found%2C in Training")
        assert "file=a%2Cb%3Ac%0A.py" in line
        assert "%250A" in line
    if form == "text":
        assert "and 4 more causes (--verbose shows them)" in out
    if form == "markdown":
        assert "<b>" not in out.replace("`", "").replace(EVIL, "") or "&lt;b&gt;" in out
    if form in ("json", "sarif"):
        json.loads(out)


def test_verbose_names_all_that_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    unknowns = tuple(Unknown("it", f"reason {n}", SourceLocation("<command>")) for n in range(9))
    found = CheckResult(("python a.py",), "here", (), unknowns, (), 1, ())
    formats()["text"].findings(found, folder=Path(), verbose=True, seconds=0.1)
    out = capsys.readouterr().out
    assert "reason 8" in out
    assert "9 unknown" in out
    assert "NOTHING FOUND" in out


def test_places_that_are_no_files(capsys: pytest.CaptureFixture[str]) -> None:
    for path in ("<command>", "<target>"):
        found = CheckResult(
            ("python a.py",), "here", (evil(path=path),), (), (), 1, ("key-missing",)
        )
        formats()["github"].findings(found, folder=Path("deep"), verbose=False, seconds=0.1)
        assert "file=" not in capsys.readouterr().out
        formats()["sarif"].findings(found, folder=Path("deep"), verbose=False, seconds=0.1)
        (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
        (place,) = result["locations"]
        assert path.strip("<>") not in place["physicalLocation"]["artifactLocation"]["uri"]


def test_data_and_their_profile_are_named_together(run: Command, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    job = ("--chdir", str(tmp_path), "--", "python", "train.py")
    assert run("check", "--data", "train.csv", *job).code == 2
    ran = run("check", "--data", "train.csv=absent.json", *job)
    assert (ran.code, "absent.json cannot be read" in ran.err) == (2, True)
    ran = run("check", "--synthesize", *job)
    assert (ran.code, "--synthesize requires --dry" in ran.err) == (2, True)
