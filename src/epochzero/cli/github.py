"""``epochzero github``: comments on pull requests and issues, written by a workflow."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from epochzero.cli.formats.github import workflow_command
from epochzero.cli.group import CommandGroup
from epochzero.cli.output import OutputFile, file_option, folder_option
from epochzero.errors import InputError, reading

if TYPE_CHECKING:
    from epochzero.github import GitHub, Links
    from epochzero.github.publish import Kind
    from epochzero.locate import Level


_Command = TypeVar("_Command", bound=Callable[..., Any])
_LARGEST_EVENT_BYTES = 32 << 20
_MAY_NOT_WRITE = 403


@click.group(cls=CommandGroup, name="github")
def command() -> None:
    """Comment on GitHub pull requests and issues.

    These commands run in a GitHub Actions workflow and read its variables: GITHUB_TOKEN,
    GITHUB_EVENT_PATH, GITHUB_REPOSITORY, GITHUB_STEP_SUMMARY, GITHUB_API_URL and
    GITHUB_SERVER_URL. Each pull request or issue has one comment, which later runs update. No code
    of the repository is run.

    \b
    epochzero github pull-request --job "python train.py --epochs 3"
    epochzero github issue --level function
    epochzero github comment --review review.json
    epochzero github issue --event event.json --dry-run
    """


def _checkout(command: _Command) -> _Command:
    """The option of the commands that read the code."""
    return folder_option(
        "--repo",
        "folder",
        default=Path("."),
        show_default=True,
        help="Root directory of the checkout.",
        exists=True,
    )(command)


def _common(command: _Command) -> _Command:
    """The options of each of the commands."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Print the comment; write nothing."),
        click.option(
            "--account",
            metavar="LOGIN",
            default="github-actions[bot]",
            show_default=True,
            help="Account of the token; its earlier comment is updated.",
        ),
        file_option(
            "--event",
            "event",
            envvar="GITHUB_EVENT_PATH",
            show_envvar=True,
            required=True,
            help="JSON file with the event.",
        ),
    ):
        command = option(command)
    return command


@command.command(name="pull-request")
@click.option(
    "--job",
    "jobs",
    metavar="COMMAND",
    multiple=True,
    help="Commands to check, one per line; repeatable.  [default: from pyproject.toml, else the launch "
    "scripts that the pull request changes]",
)
@click.option(
    "--target",
    metavar="TARGET",
    default="",
    help="Target platform: a file or a preset.  [default: from pyproject.toml, else unknown]",
)
@click.option(
    "--save",
    metavar="FILE",
    type=OutputFile(),
    help="Also write the findings to FILE, for `comment`.",
)
@_checkout
@_common
@click.pass_context
def pull_request(
    context: click.Context,
    jobs: tuple[str, ...],
    target: str,
    save: Path | None,
    event: Path,
    folder: Path,
    account: str,
    dry_run: bool,
) -> None:
    """Check the jobs of a pull request and comment with the findings.

    Findings also appear as annotations on the lines and in the step summary. If the token is not allowed to
    comment, as in a pull request from a fork, no comment is written. A second workflow can then pass the
    file written by --save to `comment`.

    \b
    epochzero github pull-request
    epochzero github pull-request --target cluster.toml --job "sbatch jobs/train.sbatch"

    Exit code 0 if there are no errors, 1 if there are errors or a job cannot be checked, 2 if the event
    or the settings are invalid or GitHub does not respond.
    """
    from epochzero.github import handed_json, read_pull_request, review, review_comment

    opened = read_pull_request(_text(event))
    lines = [line.strip() for job in jobs for line in job.splitlines() if line.strip()]
    github = _github(opened.repository, dry_run)
    changed = github.changed_files(opened.number)
    found = review(folder, changed, jobs=lines, target=target)
    body = review_comment(found, _links(github, opened.commit))
    if save:
        save.write_text(handed_json(opened.number, found), encoding="utf-8")
    if dry_run:
        click.echo(body)
    else:
        for finding in found.findings:
            click.echo(workflow_command(finding, Path(".")))
        _publish(github, opened.number, body, "check", not found.clear, account)
    if found.errors or found.not_checked:
        context.exit(1)


@command.command(name="comment")
@file_option("--review", "saved", required=True, help="File written by `pull-request --save`.")
@_common
def comment(saved: Path, event: Path, account: str, dry_run: bool) -> None:
    """Post findings that a run without permission to comment has saved, for pull requests from forks.

    Use this command in a workflow that `workflow_run` starts after that run. FILE is untrusted and
    validated. No comment is posted unless the pull request still has the repository and commit of the
    event.

    \b
    epochzero github comment --review review.json

    Exit code 0 if the comment was written or none is needed, 2 if FILE or the event is invalid or
    GitHub does not respond.
    """
    from epochzero.github import read_handed, read_run, review_comment

    run, handed = read_run(_text(event)), read_handed(_text(saved))
    github = _github(run.repository, dry_run)
    head = github.head(handed.number)
    same = (head.repository, head.commit) == (run.head_repository, run.commit)
    if not (head.open and head.repository and same):
        what = f"pull request {handed.number} is not, or no longer, at the commit that was checked"
        click.echo(f"epochzero: no comment: {what}", err=True)
        return
    found = handed.review(github.changed_files(handed.number))
    body = review_comment(found, _links(github, run.commit))
    if dry_run:
        click.echo(body)
    else:
        _publish(github, handed.number, body, "check", not found.clear, account)


@command.command(name="issue")
@click.option(
    "--level",
    type=click.Choice(("file", "function", "line")),
    default="file",
    show_default=True,
    help="Rank files, functions or lines.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 20),
    default=5,
    show_default=True,
    help="List at most this many places.",
)
@_checkout
@_common
def issue(level: Level, top: int, event: Path, folder: Path, account: str, dry_run: bool) -> None:
    """Comment on an issue with the places in the code that may contain the bug.

    \b
    epochzero github issue
    epochzero github issue --level function --top 3

    Exit code 0 if the ranking was made, 2 if the event or the repository is invalid or GitHub does not
    respond.
    """
    from epochzero.github import ranking_comment, read_issue
    from epochzero.locate import locate

    opened = read_issue(_text(event))
    github = _github(opened.repository, dry_run)
    found = locate(opened.report, folder, level=level, top=top)
    body = ranking_comment(found, _links(github, found.commit))
    if dry_run:
        click.echo(body)
    else:
        _publish(github, opened.number, body, "locate", bool(found.items), account)


def _text(event: Path) -> str:
    with reading(event), event.open("rb") as stream:
        data = stream.read(_LARGEST_EVENT_BYTES + 1)
    if len(data) > _LARGEST_EVENT_BYTES:
        raise InputError(
            f"{event} is larger than {_LARGEST_EVENT_BYTES >> 20} MB, the limit for an event"
        )
    return data.decode("utf-8", "replace")


def _github(repository: str, dry_run: bool) -> GitHub:
    """The repository that the workflow runs for, as its token sees it."""
    from epochzero.github import GitHub

    token = os.environ.get("GITHUB_TOKEN", "")
    if not token and not dry_run:
        raise InputError(
            "GITHUB_TOKEN is not set; add `env: GITHUB_TOKEN: ${{ github.token }}` to the step, or "
            "print the comment with --dry-run"
        )
    url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
    return GitHub(os.environ.get("GITHUB_REPOSITORY") or repository, token, url)


def _links(github: GitHub, commit: str) -> Links:
    from epochzero.github import Links

    server = os.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    return Links(github.repository, commit, server.rstrip("/"))


def _publish(
    github: GitHub, number: int, body: str, kind: Kind, needed: bool, account: str
) -> None:
    """Writes the comment and the step summary; the summary also where commenting is not allowed."""
    from epochzero.github import RefusedError, publish

    _summarize(body)
    try:
        done = publish(
            github,
            number,
            body,
            kind=kind,
            needed=needed,
            account=account,
            secret=os.environ.get("GITHUB_TOKEN", ""),
        )
    except RefusedError as error:
        if error.status != _MAY_NOT_WRITE:
            raise
        click.echo(
            f"epochzero: no comment: {error}. The token is read-only, as in a pull request from a fork; "
            "otherwise add `permissions: pull-requests: write, issues: write` to the workflow",
            err=True,
        )
        return
    click.echo(f"epochzero: comment {done.act}{f': {done.url}' if done.url else ''}", err=True)


def _summarize(body: str) -> None:
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if not file:
        return
    try:
        with open(file, "a", encoding="utf-8") as stream:
            stream.write(f"{body}\n")
    except OSError as error:
        click.echo(f"epochzero: no summary: {file}: {error.strerror}", err=True)
