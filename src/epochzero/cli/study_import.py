"""``epochzero study import``: issues and a clone become bug reports with their fixes."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli.layout import counted, field
from epochzero.cli.line import line
from epochzero.cli.output import OutputFile, echo_json, file_option, folder_option, format_option

if TYPE_CHECKING:
    from epochzero.study.importing import Imported


@click.command(name="import")
@file_option(
    "--issues",
    required=True,
    help="File with issues and, preferably, pull requests, as exported from GitHub: a JSON array or JSON Lines.",
)
@folder_option("--repo", required=True, help="Git clone with its full history.")
@click.option(
    "-o", "--out", "output", metavar="FILE", required=True, type=OutputFile(), help="Output file."
)
@click.option(
    "--project", metavar="OWNER/NAME", default="", help="Project to which the issues belong."
)
@click.option("--loose", is_flag=True, help="Also link by words and dates, with low confidence.")
@format_option("Output format of the summary.")
def command(issues: Path, repo: Path, output: Path, project: str, loose: bool, form: str) -> None:
    """Link issues to the commits that fixed them, and write the linked issues as bug reports.

    \b
    gh issue list --state all --limit 10000 \\
      --json number,title,body,labels,createdAt,closedAt,stateReason > issues.json
    epochzero study import --issues issues.json --repo CLONE --out reports.jsonl

    If the project merges by pull request, add the pull requests to the same file to find most fixes (gh pr
    list --state merged --json number,title,body,mergedAt,mergeCommit,createdAt,closedAt). Each record
    names the rule that linked it and its confidence.
    """
    from epochzero.study.importing import import_reports

    with line() as shown:
        imported = import_reports(
            issues, repo, project=project, loose=loose, on_progress=partial(shown.show, "issues")
        )
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in imported.records)
    output.write_text("".join(lines), encoding="utf-8", errors="surrogatepass")
    if form == "json":
        echo_json(_summary(imported))
    else:
        _print(imported, output)


def _summary(imported: Imported) -> dict[str, object]:
    return {
        "reports": len(imported.records),
        "by_rule": imported.by_rule,
        "left_out": imported.left_out,
        "shallow": imported.shallow,
    }


def _print(imported: Imported, output: Path) -> None:
    from epochzero.study.importing.links import CERTAINTIES

    click.echo(
        field("Reports", f"{counted(len(imported.records), 'bug report')} with a fix -> {output}")
    )
    for rule, count in imported.by_rule.items():
        click.echo(f"  {count:>8,}  {rule} ({CERTAINTIES[rule]})")
    if imported.left_out:
        total = sum(imported.left_out.values())
        click.echo(field("Left out", f"{total:,}"))
    for reason, count in sorted(imported.left_out.items(), key=lambda item: -item[1]):
        click.echo(f"  {count:>8,}  {reason}")
    if imported.shallow:
        click.echo(
            "epochzero: the clone is shallow, so older fixes are not found;"
            " run `git fetch --unshallow`",
            err=True,
        )
