"""``epochzero label``: independent labeling of failures or bugs by people, and their agreement."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epochzero.cli.layout import counted, field, plain, shorten, wrapped
from epochzero.cli.line import line
from epochzero.cli.output import OutputFile, echo_json, format_option, seed_option
from epochzero.errors import writing

if TYPE_CHECKING:
    from epochzero.reports.statistics import Estimate
    from epochzero.study.labelling import LabelFolder, LabelItem, Scheme
    from epochzero.study.labelling.compare import LabelledRecord, QuestionAgreement


_MOST_CONFUSED = 5


@click.command(name="label")
@click.argument("file", type=click.Path(path_type=Path, exists=True))
@click.option("--as", "annotator", metavar="NAME", help="Name of the annotator.")
@click.option("--scheme", metavar="NAME|FILE.toml",
              help="Label scheme: failures (default), bugs, or a file.")  # fmt: skip
@click.option("--agreement", is_flag=True, help="Report inter-annotator agreement.")
@click.option(
    "--disagreements", is_flag=True, help="List the records on which annotators disagree."
)
@click.option(
    "--adjudicate", is_flag=True, help="Resolve the disagreements, with all labels visible."
)
@click.option("--export", "output", metavar="OUT.jsonl", type=OutputFile(".jsonl"),
              help="Write the records with their resolved labels.")  # fmt: skip
@seed_option("Random seed of the bootstrap of --agreement.")
@format_option("Output format.")
def command(
    file: Path, annotator: str | None, scheme: str | None, agreement: bool,
    disagreements: bool, adjudicate: bool, output: Path | None, seed: int, form: str,
) -> None:  # fmt: skip
    """Label the records of FILE by hand: JSON Lines (.jsonl, .jsonl.gz) or a directory of logs.

    \b
    epochzero label failures.jsonl --as alice
    epochzero label failures.jsonl --as bob
    epochzero label failures.jsonl --agreement
    epochzero label failures.jsonl --adjudicate --as carol
    epochzero label failures.jsonl --export labelled.jsonl

    A record has a title or summary, and a description or log. Each decision is saved immediately in
    FILE.labels/NAME.jsonl. To resume, repeat the command. Labels by others and labels in the records are
    hidden until --adjudicate.

    Exit code 0, or 2 if the input is invalid.
    """
    from epochzero.study.labelling import LabelFolder, read_items

    asked = [agreement, disagreements, output is not None]
    if sum((*asked, adjudicate)) > 1 or (annotator and any(asked)):
        raise click.UsageError(
            "--as NAME, --agreement, --disagreements and --export are mutually exclusive"
        )
    if not any(asked) and not annotator:
        raise click.UsageError("missing annotator: pass --as NAME")
    with line() as shown:
        shown.show(f"{file} is read")
        found = read_items(file)
    for why, count in found.left_out.items():
        click.echo(f"epochzero: skipped {counted(count, 'record')}: {why}", err=True)
    folder = LabelFolder(file)
    chosen = folder.scheme(scheme)
    if annotator:
        _label(folder, chosen, found.items, annotator, adjudicate=adjudicate)
    elif output is not None:
        _export(folder, chosen, found.items, output)
    elif agreement:
        _agreement(folder, chosen, found.items, seed, form)
    else:
        _disagreements(folder, chosen, found.items, form)


def _label(
    folder: LabelFolder,
    scheme: Scheme,
    items: Sequence[LabelItem],
    annotator: str,
    *,
    adjudicate: bool,
) -> None:
    from epochzero.cli.label_screen import run_screen
    from epochzero.study.labelling import Session, disagreements

    records: Mapping[str, LabelledRecord] = {}
    if adjudicate:
        differing = disagreements(scheme, items, folder.annotators())
        if not differing:
            click.echo("The annotators agree on all records that were labelled twice.")
            return
        items = [record.item for record in differing]
        records = {record.item.id: record for record in differing}
    with folder.journal(annotator, scheme, adjudicating=adjudicate) as journal:
        if journal.labels.unreadable:
            unread = counted(journal.labels.unreadable, "line")
            click.echo(f"epochzero: {journal.path}: {unread} could not be read", err=True)
        session = Session(items, scheme, journal, records)
        run_screen(session, annotator)
        view = session.view()
        skipped = f", {view.skipped:,} skipped" if view.skipped else ""
        progress = (
            f"{view.labelled:,} of {counted(view.total, 'record')}{skipped} -> {journal.path}"
        )
        click.echo(field("Labelled", progress))


# Agreement


def _agreement(
    folder: LabelFolder, scheme: Scheme, items: Sequence[LabelItem], seed: int, form: str
) -> None:
    from epochzero.study.labelling import compare

    annotators = folder.annotators()
    found = compare(scheme, items, annotators, seed=seed)
    labelled = {
        name: sum(scheme.walk(annotator.answers.get(item.id, {}))[1] is None for item in items)
        for name, annotator in annotators.items()
    }
    if form == "json":
        document = {
            "schema": "epochzero.label.agreement/1",
            "records": len(items),
            "annotators": labelled,
            "questions": [_as_json(agreement) for agreement in found],
        }
        echo_json(document)
        return
    counts = ", ".join(f"{name} {count:,}" for name, count in labelled.items())
    click.echo(wrapped("Annotators", f"{counts}, of {counted(len(items), 'record')}"))
    _warn_of_versions(folder, scheme)
    if not found:
        click.echo("No record was labelled by two annotators.")
    for agreement in found:
        _write_question(agreement)


def _warn_of_versions(folder: LabelFolder, scheme: Scheme) -> None:
    for name, labels in folder.annotators().items():
        if labels.versions - {scheme.version}:
            click.echo(f"epochzero: {name} also labelled with other definitions", err=True)


def _write_question(agreement: QuestionAgreement) -> None:
    share = f"{agreement.agreed:,} of {agreement.records:,} equal ({100 * agreement.agreed / agreement.records:.1f}\xa0%)"
    click.echo()
    click.echo(wrapped(shorten(agreement.question, 11), share))
    for (first, second), agreed in agreement.pairs.items():
        percent = 100 * (agreed.accuracy.value or 0.0)
        click.echo(f"  {first} and {second}: {percent:.1f} % of {agreed.n:,}, {_kappa(agreed.kappa)}")  # fmt: skip
    if agreement.fleiss_records:
        value = "not defined" if agreement.fleiss is None else f"{agreement.fleiss:.2f}"
        click.echo(f"  all: Fleiss' kappa {value}, of {agreement.fleiss_records:,}")
    for label in agreement.labels:
        click.echo(f"    {label.name:<24} {100 * label.f1:5.1f} % equal, used {counted(label.true + label.predicted, 'time')}")  # fmt: skip
    for first, second, count in agreement.confused[:_MOST_CONFUSED]:
        click.echo(f"    {first} or {second}: {counted(count, 'time')}")


def _kappa(estimate: Estimate) -> str:
    if estimate.value is None:
        return "Cohen's kappa undefined: all labels are the same"
    low, high = estimate.interval or (estimate.value, estimate.value)
    return f"Cohen's kappa {estimate.value:.2f} (95 %: {low:.2f} to {high:.2f})"


def _as_json(agreement: QuestionAgreement) -> dict[str, Any]:
    return {
        "question": agreement.question,
        "records": agreement.records,
        "agreed": agreement.agreed,
        "pairs": [
            {
                "annotators": [*names],
                "records": agreed.n,
                "share": agreed.accuracy.value,
                "kappa": agreed.kappa.value,
                "kappa_interval": agreed.kappa.interval,
                "labels": list(agreed.classes),
                "confusion": agreed.matrix.tolist(),
            }
            for names, agreed in agreement.pairs.items()
        ],
        "fleiss_kappa": agreement.fleiss,
        "fleiss_records": agreement.fleiss_records,
        "labels": {
            x.name: {"given": x.true + x.predicted, "share": x.f1} for x in agreement.labels
        },
    }


def _disagreements(
    folder: LabelFolder, scheme: Scheme, items: Sequence[LabelItem], form: str
) -> None:
    from epochzero.study.labelling import disagreements

    found = disagreements(scheme, items, folder.annotators())
    if form == "json":
        records = [{"id": disagreement.item.id, "title": disagreement.item.title, "said": disagreement.differing, "notes": disagreement.notes}
                   for disagreement in found]  # fmt: skip
        echo_json(records)
        return
    click.echo(f"{counted(len(found), 'record')} with disagreement")
    for disagreement in found:
        _write_disagreement(disagreement)


def _write_disagreement(disagreement: LabelledRecord) -> None:
    click.echo()
    click.echo(
        click.style(
            plain(f"{disagreement.item.id}  {shorten(disagreement.item.title, 80)}"), bold=True
        )
    )
    for question, answers in disagreement.differing.items():
        listed = ", ".join(f"{name} {word}" for name, word in answers.items())
        click.echo(wrapped(f"  {question}", listed))
    for name, text in disagreement.notes.items():
        click.echo(wrapped(f"  {name}", text))


def _export(folder: LabelFolder, scheme: Scheme, items: Sequence[LabelItem], output: Path) -> None:
    from epochzero.study.labelling import exported

    records = list(exported(scheme, items, folder.annotators(), folder.adjudicated()))
    with writing(output), output.open("w", encoding="utf-8", errors="replace") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    summary = f"{len(records):,} of {counted(len(items), 'record')} with labels -> {output}"
    click.echo(field("Exported", summary))
    for word, number in Counter(record["label_from"] for record in records).items():
        click.echo(f"  {number:>8,}  {word}")
    if unresolved := sum(bool(record["unresolved"]) for record in records):
        click.echo(f"  {unresolved:>8,}  with an unresolved question (use --adjudicate)")
