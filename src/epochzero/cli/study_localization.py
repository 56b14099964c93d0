"""``epochzero study localization``: compares bug-localization techniques on many bugs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from epochzero.cli.cache import cache_folder
from epochzero.cli.engine import engine_options, quiet_ray
from epochzero.cli.layout import counted, wrapped
from epochzero.cli.line import line
from epochzero.cli.output import (
    OutputFolder,
    folder_option,
    format_option,
    out_option,
    seed_option,
    write_study,
)
from epochzero.errors import InputError

_PATH = click.Path(path_type=Path)


@click.command(name="localization")
@click.option("--reports", metavar="FILE", type=_PATH, required=True,
              help="File with bug reports and their fixes, or a directory of Denchmark or BugsInPy.")  # fmt: skip
@folder_option("--repos", required=True, help="Directory of clones named owner+name.")  # fmt: skip
@out_option()
@click.option("--baseline-reports", "baseline", metavar="FILE", type=_PATH,
              help="File with bug reports of traditional systems, for comparison.")  # fmt: skip
@click.option("--techniques", metavar="NAMES",
              help="Comma-separated techniques, or all.  [default: all but bjxnet]")  # fmt: skip
@click.option("--rankings", metavar="FILE", type=_PATH,
              help="File with rankings from other tools: JSON Lines with id, technique and files.")  # fmt: skip
@click.option("--tree", type=click.Choice(("parent", "release")), default="parent", show_default=True,
              help="Search the parent of the fix, or the last release before the report.")  # fmt: skip
@click.option("--titles-only", is_flag=True, help="Use report titles only.")  # fmt: skip
@click.option("--sample", metavar="N", type=click.IntRange(min=1), help="Measure a sample of N bugs per file.")  # fmt: skip
@engine_options(also="-j --jobs")
@click.option("--work", metavar="DIR", type=OutputFolder(), help="Directory of cached results.  [default: the cache directory]")  # fmt: skip
@seed_option("Random seed of the bootstrap and of sampling.")
@format_option("Output format of the summary.")
def command(
    reports: Path,
    repos: Path,
    out: Path,
    baseline: Path | None,
    techniques: str | None,
    rankings: Path | None,
    tree: str,
    titles_only: bool,
    sample: int | None,
    engine: str,
    workers: int | None,
    address: str | None,
    work: Path | None,
    seed: int,
    form: str,
) -> None:
    """Compare bug localization techniques across systems, projects and bug types.

    Each technique ranks the files of each bug's repository as of the commit before the fix. The report
    contains the analyses of Jahan et al. (EMSE 2025) with confidence intervals next to their published
    numbers, and shows which of their findings hold on this data.

    \b
    epochzero study localization --reports reports.jsonl.gz --repos clones/ --out report/
    epochzero study localization --reports dl.jsonl --baseline-reports bugl.jsonl --titles-only \\
        --repos clones/ --out report/
    epochzero study localization --reports reports.jsonl --repos clones/ --out report/ --sample 100

    Results are cached, so an interrupted run resumes and a second run takes seconds. With --engine ray,
    each machine needs the clones at the same path; the directory of --work is local. `epochzero study import` creates
    reports from issues and a clone.

    Exit code 0 if the report was written, even if there are no bugs; 2 if the input is invalid.
    """
    from epochzero.reports.figures import require_matplotlib
    from epochzero.study.comparison import require_scipy
    from epochzero.study.localization import (
        clones,
        measure,
        read_rankings,
        read_reports,
        select,
        study_localization,
        subjects_of,
        with_rankings,
    )

    require_matplotlib()
    require_scipy()
    if address and engine != "ray":
        raise click.UsageError("--address requires --engine ray")
    quiet_ray()
    names = _techniques(techniques)
    selected = select(
        read_reports(reports),
        read_reports(baseline) if baseline else None,
        sample=sample,
        titles_only=titles_only,
        seed=seed,
    )
    ranked, unread = read_rankings(rankings) if rankings else ({}, {})
    with line() as shown:
        measured, lost = measure(
            selected.bugs,
            selected.asked,
            clones(repos),
            names,
            work or _work(),
            tree="release" if tree == "release" else "parent",
            engine=engine,
            workers=workers,
            address=address,
            on_progress=partial(shown.show, "bugs"),
        )
    external = sorted({name for of in ranked.values() for name in of} - {*names})
    studied = study_localization(
        subjects_of(with_rankings(measured, ranked), selected.baseline),
        names,
        {**selected.left_out, **unread, **lost},
        external=external,
        source=" and ".join(path.name for path in (reports, baseline) if path),
        seed=seed,
    )
    write_study(studied, out, form, _write_text)


def _techniques(text: str | None) -> tuple[str, ...]:
    from epochzero.locate import METHODS
    from epochzero.study.localization import DEFAULT_TECHNIQUES

    if text is None:
        return DEFAULT_TECHNIQUES
    return tuple(METHODS) if text == "all" else tuple(dict.fromkeys(text.split(",")))


def _work() -> Path:
    folder = cache_folder()
    if folder is None:
        raise InputError(
            "the results cannot be cached because the home directory is unknown: pass --work DIR"
        )
    return folder / "study"


def _write_text(summary: Mapping[str, Any]) -> None:
    left = sum(summary["left_out"].values())
    bugs = f"{summary['bugs']:,} of {counted(summary['projects'], 'project')}"
    click.echo(wrapped("Bugs", bugs + (f"; {left:,} left out" if left else "")))
    for name, of in summary["techniques"].items():
        values = (
            f"{system.replace('_', ' ')} {value['map']['value']:.3f} (n = {value['bugs']:,})"
            for system, value in of.items()
            if value["bugs"]
        )
        if shown := ", ".join(values):
            click.echo(wrapped("MAP", f"{name}: {shown}"))
    for finding in summary["findings"]:
        click.echo(wrapped("Finding", f"{finding['text']}: {finding['verdict']}"))
    for why, n in sorted(summary["left_out"].items(), key=lambda pair: -pair[1]):
        click.echo(wrapped("Left out", f"{n:,}: {why}"))
