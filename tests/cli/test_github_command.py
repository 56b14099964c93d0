"""``epochzero github``, as a workflow calls it, against a server that answers as GitHub does."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml

from epochzero.cli.github import command
from tests.forge import (
    COMMIT,
    FORK,
    REPOSITORY,
    TOKEN,
    Forge,
    fork_pull,
    issue_event,
    pull_request_event,
    run_event,
)

if TYPE_CHECKING:
    from conftest import Command, Made

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/epochzero.yml"
GUIDE = (ROOT / "docs/github.md").read_text(encoding="utf-8")
WRONG = 'print("%d of %d" % (1,))\n'
RIGHT = "print(1)\n"


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    """The server, and the variables of a workflow's step."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps(pull_request_event()))
    with Forge({7: [{"filename": "train.sh", "status": "modified"}]}) as running:
        for name, value in {
            "GITHUB_API_URL": running.url,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_TOKEN": TOKEN,
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("GITHUB_SERVER_URL", raising=False)
        yield running


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "train.sh").write_text("#!/bin/bash\nset -e\npython train.py\n")
    (folder / "train.py").write_text(WRONG)
    monkeypatch.chdir(folder)
    return folder


def summary(tmp_path: Path) -> str:
    file = tmp_path / "summary.md"
    return file.read_text() if file.exists() else ""


def test_a_pull_request_from_its_first_error_to_all_clear(
    run: Command, forge: Forge, checkout: Path, tmp_path: Path
) -> None:
    ran = run("github", "pull-request")
    assert ran.code == 1
    annotation, *more = ran.out.splitlines()
    assert annotation.startswith("::error title=format-arguments")
    assert "file=train.py,line=1" in annotation
    assert not more
    assert "comment posted: https://github.com/" in ran.err
    (body,) = forge.bodies(7)
    assert "1 error, 0 warnings predicted" in body
    assert body.endswith(summary(tmp_path).rstrip("\n"))

    (checkout / "train.py").write_text(RIGHT)
    ran = run("github", "pull-request")
    assert (ran.code, ran.out) == (0, "")
    (body,) = forge.bodies(7)
    assert "all clear" in body
    assert "all clear" in summary(tmp_path)
    assert "comment unchanged" in run("github", "pull-request").err


def test_a_pull_request_in_which_nothing_is_found_gets_no_comment(
    run: Command, forge: Forge, checkout: Path
) -> None:
    (checkout / "train.py").write_text(RIGHT)
    ran = run("github", "pull-request")
    assert (ran.code, ran.err) == (0, "epochzero: comment not needed\n")
    assert forge.bodies(7) == []


def test_jobs_may_be_given_one_a_line(run: Command, forge: Forge, checkout: Path) -> None:
    (checkout / "other.py").write_text(WRONG)
    assert run("github", "pull-request", "--job", "\npython other.py\npython train.py\n").code == 1
    (body,) = forge.bodies(7)
    assert "`python other.py`, `python train.py`" in body
    # What a workflow gives that says nothing.
    assert run("github", "pull-request", "--job", "", "--target", "").code == 1


def test_where_the_token_may_not_write_the_findings_are_annotations(
    run: Command, forge: Forge, checkout: Path, tmp_path: Path
) -> None:
    forge.read_only = True
    ran = run("github", "pull-request")
    assert ran.code == 1
    assert ran.out.startswith("::error ")
    assert "no comment" in ran.err
    assert "1 error" in summary(tmp_path)


@pytest.fixture
def handed(run: Command, forge: Forge, checkout: Path, tmp_path: Path) -> Path:
    """What the run for a pull request from a fork leaves behind; the second run begins."""
    forge.read_only = True
    saved = tmp_path / "review.json"
    assert run("github", "pull-request", "--save", saved).code == 1
    assert forge.bodies(7) == []
    forge.read_only = False
    forge.pulls[7] = fork_pull()
    (tmp_path / "event.json").write_text(json.dumps(run_event()))
    (checkout / "train.py").unlink()
    return saved


def test_a_second_run_comments_what_the_first_one_for_a_fork_has_found(
    run: Command, forge: Forge, handed: Path, tmp_path: Path
) -> None:
    first = (tmp_path / "summary.md").read_text().rstrip("\n")
    assert run("github", "comment", "--review", handed, "--dry-run").out.rstrip("\n") == first
    ran = run("github", "comment", "--review", handed)
    assert (ran.code, "comment posted" in ran.err) == (0, True)
    (body,) = forge.bodies(7)
    assert body.endswith(first)
    assert "comment unchanged" in run("github", "comment", "--review", handed).err

    clear = {**json.loads(handed.read_text()), "findings": []}
    handed.write_text(json.dumps(clear))
    assert "comment updated" in run("github", "comment", "--review", handed).err
    (body,) = forge.bodies(7)
    assert "all clear" in body


@pytest.mark.parametrize(
    ("pull", "event"),
    [
        ({"state": "closed"}, {}),
        ({"head": {"sha": "1" * 40, "repo": {"full_name": FORK}}}, {}),
        ({"head": {"sha": COMMIT, "repo": {"full_name": "other/project"}}}, {}),
        ({"head": {"sha": COMMIT, "repo": None}}, {"head_repository": None}),
        ({}, {"head_sha": "2" * 40}),
        ({}, {"head_repository": {"full_name": "other/project"}}),
    ],
)
def test_a_pull_request_that_the_run_is_not_of_gets_no_comment(
    run: Command,
    forge: Forge,
    handed: Path,
    tmp_path: Path,
    pull: dict[str, Any],
    event: dict[str, Any],
) -> None:
    forge.pulls[7] = fork_pull(**pull)
    (tmp_path / "event.json").write_text(json.dumps(run_event(**event)))
    ran = run("github", "comment", "--review", handed)
    assert (ran.code, "no comment" in ran.err) == (0, True)
    assert {method for method, _ in forge.asked} == {"GET", "POST"}, "the POST of the first run"
    assert forge.bodies(7) == []


def test_a_file_that_names_another_pull_request_is_of_no_use(
    run: Command, forge: Forge, handed: Path
) -> None:
    forge.pulls[8] = fork_pull(number=8, head={"sha": "3" * 40, "repo": {"full_name": REPOSITORY}})
    handed.write_text(json.dumps({**json.loads(handed.read_text()), "number": 8}))
    assert "no comment" in run("github", "comment", "--review", handed).err
    handed.write_text("### Hello @team")
    ran = run("github", "comment", "--review", handed)
    assert (ran.code, "not valid JSON" in ran.err) == (2, True)
    assert forge.comments == {}


def test_a_dry_run_writes_nothing_and_needs_no_token(
    run: Command, forge: Forge, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    ran = run("github", "pull-request", "--dry-run")
    assert ran.code == 1
    assert ran.out.startswith("### EpochZero: 1 error")
    assert {method for method, _ in forge.asked} == {"GET"}
    assert summary(tmp_path) == ""
    ran = run("github", "pull-request")
    assert (ran.code, "GITHUB_TOKEN is not set" in ran.err) == (2, True)


def test_an_event_that_cannot_be_used(
    run: Command, forge: Forge, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("github", "pull-request", "--event", tmp_path / "absent.json").code == 2
    ran = run("github", "issue")
    assert (ran.code, "has no issue" in ran.err) == (2, True)
    monkeypatch.delenv("GITHUB_EVENT_PATH")
    assert "--event" in run("github", "pull-request").err
    assert forge.asked == []


def test_an_issue_is_told_where_its_bug_may_be(
    run: Command, forge: Forge, made: Made, tmp_path: Path
) -> None:
    made.write("src/loader.py", "def read_shard(name):\n    raise ValueError('cut off')\n")
    made.write("src/model.py", "def forward(batch):\n    return batch\n")
    commit = made.commit()
    event = tmp_path / "event.json"
    event.write_text(json.dumps(issue_event("read_shard fails @team", "<b>read_shard</b>")))
    ran = run("github", "issue", "--repo", made.folder)
    assert (ran.code, ran.out) == (0, "")
    (body,) = forge.bodies(9)
    assert f"1. [`src/loader.py`](https://github.com/{REPOSITORY}/blob/{commit}/src/" in body
    assert "@team" not in body

    event.write_text(json.dumps(issue_event("Zzyzx qwertz", "xyzzy")))
    assert run("github", "issue", "--repo", made.folder).code == 0
    (body,) = forge.bodies(9)
    assert "no code matches this report" in body


# -- The workflow and the documentation --------------------------------------------------------


def steps() -> list[dict[str, Any]]:
    """The steps of all jobs of the reusable workflow."""
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_the_workflow_calls_commands_that_there_are() -> None:
    called = [step["run"] for step in steps() if step.get("run", "").startswith("epochzero")]
    assert len(called) == 3
    for line in called:
        name, *words = shlex.split(line)[2:]
        assert isinstance(command, click.Group)
        options = {option for one in command.commands[name].params for option in one.opts}
        assert {word for word in words if word.startswith("--")} <= options


def test_no_text_of_an_event_becomes_a_command() -> None:
    for step in steps():
        assert "${{" not in step.get("run", "")
    text = WORKFLOW.read_text(encoding="utf-8")
    assert "pull_request_target" not in text
    assert text.count("persist-credentials: false") == text.count("actions/checkout")


def test_nothing_of_a_pull_request_is_beside_the_token_that_may_comment() -> None:
    job = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["comment"]
    assert "workflow_run" in job["if"]
    used = [step.get("uses", "").partition("@")[0] for step in job["steps"]]
    assert not any("checkout" in name for name in used)
    (download,) = (step for step in job["steps"] if "download-artifact" in step.get("uses", ""))
    assert "runner.temp" in download["with"]["path"]


def test_the_guide_calls_the_workflow_as_it_is() -> None:
    # YAML 1.1 reads the key `on` as a truth value.
    given = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))[True]["workflow_call"]["inputs"]
    blocks = re.findall(r"(?ms)^```yaml\n(.*?)^```$", GUIDE)
    calls = [
        job
        for block in blocks
        for job in yaml.safe_load(block)["jobs"].values()
        if "epochzero.yml" in job.get("uses", "")
    ]
    assert calls
    for call in calls:
        assert call.get("with", {}).keys() <= given.keys()
    for name in given:
        assert f"`{name}`" in GUIDE
