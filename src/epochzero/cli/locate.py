"""``epochzero locate``: ranks places in the code for a bug report or a failed job's log."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli.cache import cache_folder
from epochzero.cli.formats import formats, names_of
from epochzero.cli.line import StatusLine, line
from epochzero.cli.output import file_option, format_option
from epochzero.code import Cache
from epochzero.errors import InputError
from epochzero.locate import (
    DEFAULT_METHOD,
    FORMULAS,
    LEVELS,
    METHODS,
    Locator,
    PastReport,
    Query,
    Report,
    Reranker,
    Run,
    query_of,
    read_coverage,
    read_past,
    read_report,
    with_diagnosis,
)
from epochzero.logs.source import STDIN, find_logs, looks_binary

if TYPE_CHECKING:
    from epochzero.diagnose import Diagnosis
    from epochzero.locate import Level


KEY_VARIABLE = "EPOCHZERO_RERANK_KEY"
LARGEST_REPORT_BYTES = 64 << 20
HEAD_BYTES = 1 << 14
_ENCODINGS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@click.command(name="locate", no_args_is_help=True)
@click.argument("report", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Log of the failed job, or a directory of logs; repeatable.",
)
@click.option(
    "--repo",
    "repository",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("."),
    show_default=True,
    help="Git repository to search, or a directory in it.",
)
@click.option("--rev", help="Commit, branch or tag to search.  [default: HEAD]")
@click.option(
    "--work-tree", is_flag=True, help="Search the working tree, including uncommitted changes."
)
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="file",
    show_default=True,
    help="Rank files, functions or lines.",
)
@click.option(
    "--method",
    type=click.Choice([*METHODS, *FORMULAS]),
    help=f"Ranking method.  [default: {DEFAULT_METHOD}; with --coverage {next(iter(FORMULAS))}]",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="List at most this many results.",
)
@file_option(
    "--coverage",
    help="Rank the code that failing tests cover; FILE is a coverage.py JSON report with contexts.",
)
@file_option(
    "--failed", help="With --coverage: file of failed tests, one per line, or pytest's lastfailed."
)
@click.option("--explain", is_flag=True, help="Show all evidence, including recent fixes.")
@format_option("Output format.", names_of("ranking"))
@file_option(
    "--past",
    "past_file",
    help="File with past reports as JSON Lines: title, body, closed_at, files.",
)
@click.option(
    "--rerank",
    "server",
    metavar="URL",
    help="Send the report and the first 20 places to the language model at this OpenAI-compatible API, "
    "which reorders them. Without it, nothing is sent.",
)
@click.option(
    "--rerank-model",
    metavar="NAME",
    help="Model of the --rerank API.  [default: the only model that it offers]",
)
@click.option(
    "--rerank-price",
    metavar="IN,OUT",
    help="Print the cost at these prices: USD per million prompt and completion tokens.",
)
@click.option("--no-cache", is_flag=True, help="Do not read or write the cache.")
def command(
    report: Path | None,
    logs: tuple[Path, ...],
    repository: Path,
    rev: str | None,
    work_tree: bool,
    level: Level,
    method: str | None,
    top: int,
    coverage: Path | None,
    failed: Path | None,
    explain: bool,
    form: str,
    past_file: Path | None,
    server: str | None,
    rerank_model: str | None,
    rerank_price: str | None,
    no_cache: bool,
) -> None:
    """Rank the files, functions or lines of a git repository that may contain a reported bug.

    REPORT is a file, or - for standard input: plain text or Markdown with the title in the first
    line, or a GitHub issue's JSON. A log is diagnosed first. Its first failure becomes the query,
    alone or together with REPORT.

    \b
    epochzero locate issue.md
    epochzero locate issue.json --repo ~/src/project --rev v1.2 --level function
    epochzero locate --log slurm-4242.out --explain
    gh issue view 17 --json title,body | epochzero locate -
    epochzero locate --coverage coverage.json --failed .pytest_cache/v/cache/lastfailed

    With --rerank, set the environment variable EPOCHZERO_RERANK_KEY if the API requires a key.

    Exit code 0 if a ranking was made, 2 if the input is invalid.
    """
    _check_usage(report, logs, method, coverage, failed)
    if rev is not None and work_tree:
        raise click.UsageError("--rev and --work-tree are mutually exclusive")
    if report == STDIN and STDIN in logs:
        raise click.UsageError("standard input cannot be both the report and the log")
    if coverage and server:
        raise click.UsageError("--rerank requires REPORT or --log")
    if server is None and (rerank_model or rerank_price):
        raise click.UsageError(f"--rerank-{'model' if rerank_model else 'price'} requires --rerank")
    query = None if coverage else _query(report, logs)
    cache = None if no_cache else _cache()
    with line() as shown:
        reranker = None
        if server is not None:
            reranker = _reranker(server, rerank_model, rerank_price, no_cache, shown)
        locator = Locator(
            repository,
            cache=cache,
            past=_past(past_file),
            on_progress=partial(shown.show, "files parsed"),
        )
        at = None if work_tree else rev or "HEAD"
        if query is None:
            runs = _runs(coverage, failed)
            found = locator.covered(
                runs, at, level=level, method=method or next(iter(FORMULAS)), top=top
            )
        else:
            found = locator.locate(
                query,
                at,
                level=level,
                method=method or DEFAULT_METHOD,
                top=top,
                explain=explain,
                reranker=reranker,
            )
    _let_go(cache)
    formats()[form].ranking(found, explain=explain)


# -- What is given -----------------------------------------------------------------------------


def _check_usage(
    report: Path | None,
    logs: Sequence[Path],
    method: str | None,
    coverage: Path | None,
    failed: Path | None,
) -> None:
    """Whether what is given belongs together.

    Raises:
        UsageError: it does not.
    """
    if coverage is None:
        if report is None and not logs:
            raise click.UsageError("missing input: pass REPORT, --log, or --coverage with --failed")
        if failed is not None or method in FORMULAS:
            raise click.UsageError(f"{'--failed' if failed else method} requires --coverage")
    elif failed is None or report is not None or logs:
        raise click.UsageError("--coverage requires --failed and excludes REPORT and --log")
    elif method in METHODS:
        raise click.UsageError(f"{method} ranks reports; with --coverage: {', '.join(FORMULAS)}")


def _runs(coverage: Path | None, failed: Path | None) -> tuple[Run, ...]:
    """The runs of a coverage report, and which of them failed."""
    assert coverage is not None
    assert failed is not None
    text = _text(failed, str(failed))
    try:
        # pytest stores them as the keys of an object.
        names = list(json.loads(text)) if text.lstrip().startswith("{") else text.split("\n")
    except ValueError as error:
        raise InputError(f"{failed} is neither a list of test names nor JSON: {error}") from error
    try:
        return read_coverage(
            _text(coverage, str(coverage)), [n.strip() for n in names if n.strip()]
        )
    except InputError as error:
        raise InputError(f"{coverage}: {error}") from error


def _query(path: Path | None, logs: Sequence[Path]) -> Query:
    report = None if path is None else _report(path)
    if not logs:
        assert report is not None
        return query_of(report)
    diagnosis = _diagnosis(logs)
    if diagnosis.root is not None:
        return with_diagnosis(report, diagnosis)
    if report is None:
        names = ", ".join(map(str, logs))
        raise InputError(f"{names} contains no failure to search for; pass a REPORT")
    click.echo("epochzero: the logs contain no failure; searching by the report only", err=True)
    return query_of(report)


def _diagnosis(paths: Sequence[Path]) -> Diagnosis:
    from epochzero.diagnose import Diagnoser, find_facts

    return Diagnoser().diagnose(find_logs(paths), find_facts([p for p in paths if p != STDIN]))


def _report(path: Path) -> Report:
    name = "standard input" if path == STDIN else str(path)
    try:
        return read_report(_text(path, name), is_json=path.suffix == ".json")
    except InputError as error:
        raise InputError(str(error) if name in str(error) else f"{name}: {error}") from error


def _past(path: Path | None) -> tuple[PastReport, ...]:
    if path is None:
        return ()
    text = _text(path, str(path))
    try:
        return read_past(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _text(path: Path, name: str) -> str:
    """The text of a file in UTF-8 or UTF-16; bytes that are neither are replaced."""
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read(LARGEST_REPORT_BYTES + 1)
        else:
            with path.open("rb") as stream:
                data = stream.read(LARGEST_REPORT_BYTES + 1)
    except OSError as error:
        hint = "; pass a text on standard input, with - as REPORT" if " " in name else ""
        raise InputError(f"{name} cannot be read: {error.strerror or error}{hint}") from error
    if len(data) > LARGEST_REPORT_BYTES:
        most = LARGEST_REPORT_BYTES >> 20
        raise InputError(f"{name} is larger than {most} MB; pass logs with --log")
    for mark, encoding in _ENCODINGS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if looks_binary(data[:HEAD_BYTES]):
        raise InputError(f"{name} is not text (binary file)")
    return data.decode("utf-8-sig", "replace")


# -- The language model ------------------------------------------------------------------------


def _reranker(
    url: str, model: str | None, price: str | None, no_cache: bool, shown: StatusLine
) -> Reranker:
    """The language model that reorders the ranking.

    Only a variable of its own provides the key: keys of other programs must not reach this server.
    """
    folder = None if no_cache else cache_folder()
    return Reranker(
        url,
        model or "",
        key=os.environ.get(KEY_VARIABLE, "").strip(),
        price=None if price is None else _price(price),
        cache=folder and folder / "rerank",
        on_request=lambda server: shown.show(f"waiting for the model at {server}", at_once=True),
    )


def _price(text: str) -> tuple[float, float]:
    try:
        prompts, completions = (float(part) for part in text.split(","))
    except ValueError:
        prompts = completions = -1.0
    if not (0 <= prompts < 1e6 and 0 <= completions < 1e6):
        raise click.UsageError(
            f"--rerank-price {text}: expected two amounts in USD, such as 0.15,0.60"
        )
    return prompts, completions


# -- The cache ---------------------------------------------------------------------------------


def _cache() -> Cache | None:
    """The user's cache of parsed files, where there is a place for it."""
    folder = cache_folder()
    return None if folder is None else Cache(folder / "code")


def _let_go(cache: Cache | None) -> None:
    """Close the cache, and report problems with it."""
    if cache is None:
        return
    cache.close()
    if cache.set_aside:
        click.echo(f"epochzero: moved a damaged cache to {cache.set_aside}", err=True)
    if cache.problem:
        click.echo(f"epochzero: continuing without the cache: {cache.problem}", err=True)
