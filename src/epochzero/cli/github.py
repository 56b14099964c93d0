"""``epochzero github``: comments on pull requests and issues, written by a workflow."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from epochzero.cli.group import Group
from epochzero.cli.output import OutputFile
from epochzero.cli.render_findings import workflow_command
from epochzero.errors import InputError

if TYPE_CHECKING:
    from epochzero.github import GitHub, Links
    from epochzero.github.publish import Kind
    from epochzero.locate import Level


_Command = TypeVar("_Command", bound=Callable[..., Any])
_LARGEST_EVENT_BYTES = 32 << 20
_MAY_NOT_WRITE = 403


@click.group(cls=Group, name="github")
def command() -> None:
    """Comment on a pull request or an issue on GitHub: once, and brought up to date.

    Meant for a workflow, whose variables it reads: GITHUB_TOKEN, GITHUB_EVENT_PATH,
    GITHUB_REPOSITORY, GITHUB_STEP_SUMMARY, GITHUB_API_URL and GITHUB_SERVER_URL. Nothing of the
    repository is run.

    \b
    epochzero github pull-request --job "python train.py --epochs 3"
    epochzero github issue --level function
    epochzero github comment --review review.json
    epochzero github issue --event event.json --dry-run
    """


def _checkout(command: _Command) -> _Command:
    """The option of the commands that read the code."""
    return click.option(
        "--repo",
        "folder",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False, exists=True),
        default=Path("."),
        show_default=True,
        help="The top of the checkout.",
    )(command)


def _common(command: _Command) -> _Command:
    """The options of each of the commands."""
    for option in (
        click.option(
            "--dry-run", is_flag=True, help="Print the comment, and write nothing anywhere."
        ),
        click.option(
            "--account",
            metavar="LOGIN",
            default="github-actions[bot]",
            show_default=True,
            help="Whose comments are brought up to date: the one that the token is of.",
        ),
        click.option(
            "--event",
            "event",
            metavar="FILE",
            envvar="GITHUB_EVENT_PATH",
            show_envvar=True,
            required=True,
            type=click.Path(path_type=Path, dir_okay=False),
            help="The event as JSON.",
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
    help="A command to check, or several, one a line; repeatable.  [default: of pyproject.toml, else "
    "the launch scripts that the pull request changes]",
)
@click.option(
    "--target",
    metavar="TARGET",
    default="",
    help="The platform: a file or a preset.  [default: of pyproject.toml, else nothing is assumed]",
)
@click.option(
    "--save",
    metavar="FILE",
    type=OutputFile(),
    help="Also write what was found there, for `comment`.",
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
    """Check the jobs of a pull request, and say on it what will go wrong.

    The findings become annotations of the lines and a summary of the step too; where the token may not
    comment, as in a pull request from a fork, they are all there is, unless a second workflow takes what
    --save wrote to `comment`.

    \b
    epochzero github pull-request
    epochzero github pull-request --target cluster.toml --job "sbatch jobs/train.sbatch"

    Exit code 1 when there are errors or a job cannot be checked, 0 when there are warnings at most,
    2 when the event or the settings cannot be used, or GitHub does not answer.
    """
    _check_installed()
    from epochzero.github import handed_json, read_pull_request, review, review_comment

    opened = read_pull_request(_text(event))
    lines = [line.strip() for job in jobs for line in job.splitlines() if line.strip()]
    with _github(opened.repository, dry_run) as github:
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
@click.option(
    "--review",
    "saved",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="What `pull-request --save` wrote.",
)
@_common
def comment(saved: Path, event: Path, account: str, dry_run: bool) -> None:
    """Say on a pull request from a fork what a run that might not comment has found.

    Meant for a workflow that `workflow_run` starts when that run has ended. FILE may hold anything: it is
    taken for values of known forms. The pull request must come from where the event says, and still
    stand at its commit.

    \b
    epochzero github comment --review review.json

    Exit code 0 when there is a comment or none is needed, 2 when FILE or the event cannot be used, or
    GitHub does not answer.
    """
    _check_installed()
    from epochzero.github import read_handed, read_run, review_comment

    run, handed = read_run(_text(event)), read_handed(_text(saved))
    with _github(run.repository, dry_run) as github:
        head = github.head(handed.number)
        same = (head.repository, head.commit) == (run.head_repository, run.commit)
        if not (head.open and head.repository and same):
            what = f"pull request {handed.number} does not stand, or no longer, at what was checked"
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
    help="What to rank.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 20),
    default=5,
    show_default=True,
    help="Name at most this many places.",
)
@_checkout
@_common
def issue(level: Level, top: int, event: Path, folder: Path, account: str, dry_run: bool) -> None:
    """Say on an issue where in the code its bug may be.

    \b
    epochzero github issue
    epochzero github issue --level function --top 3

    Exit code 0 when the question was answered, 2 when the event or the repository cannot be used, or
    GitHub does not answer.
    """
    _check_installed()
    from epochzero.github import ranking_comment, read_issue
    from epochzero.locate import locate

    opened = read_issue(_text(event))
    with _github(opened.repository, dry_run) as github:
        found = locate(opened.report, folder, level=level, top=top)
        body = ranking_comment(found, _links(github, found.commit))
        if dry_run:
            click.echo(body)
        else:
            _publish(github, opened.number, body, "locate", bool(found.items), account)


def _check_installed() -> None:
    if find_spec("httpx") is None:
        raise InputError(
            "talking to GitHub needs one more package: pip install 'epochzero[github]'"
        )


def _text(event: Path) -> str:
    try:
        with event.open("rb") as stream:
            data = stream.read(_LARGEST_EVENT_BYTES + 1)
    except OSError as error:
        raise InputError(f"{event}: cannot be read: {error.strerror or error}") from error
    if len(data) > _LARGEST_EVENT_BYTES:
        raise InputError(f"{event}: larger than {_LARGEST_EVENT_BYTES >> 20} MB; no event is")
    return data.decode("utf-8", "replace")


def _github(repository: str, dry_run: bool) -> GitHub:
    """The repository that the workflow runs for, as its token sees it."""
    from epochzero.github import GitHub

    token = os.environ.get("GITHUB_TOKEN", "")
    if not token and not dry_run:
        raise InputError(
            "GITHUB_TOKEN is not set; in a workflow give the step `env: GITHUB_TOKEN: "
            "${{ github.token }}`, or see the comment with --dry-run"
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
    """The comment, and the summary of the step: that is there too where commenting is not allowed."""
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
            f"epochzero: no comment: {error}. The token may only read, as that of a pull request from "
            "a fork; otherwise give the workflow `permissions: pull-requests: write, issues: write`",
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
