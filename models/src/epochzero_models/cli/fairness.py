"""``epochzero model fairness``: finds predictions that depend on protected attributes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli.layout import wrapped
from epochzero.cli.output import echo_json, file_option, format_option
from epochzero.errors import InputError
from epochzero_models.cli.options import ModelRequest, model_options, working
from epochzero_models.cli.wording import share, share_with_interval

if TYPE_CHECKING:
    from epochzero_models import Classifier, Fairness
    from epochzero_models.classifier import ProgressCallback
    from epochzero_models.fairness import PeopleTable


SECONDS = 10.0
TRAIN = "train"


@click.command(name="fairness")
@model_options
@click.option("--protected", metavar="COLUMN,...",
              help="Protected attributes.  [default: those of Census, Credit and Bank]")  # fmt: skip
@file_option("--domains", help="TOML file with the possible values of the columns.  [default: those in DATA]", exists=True)  # fmt: skip
@click.option("--budget", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help=f"Time limit of each search.  [default: {SECONDS:g}, none with --inputs]")  # fmt: skip
@click.option("--inputs", type=click.IntRange(min=1), metavar="N",
              help="Stop each search after N inputs; the same seed then gives the same result.")  # fmt: skip
@click.option("--instances", type=click.IntRange(min=1), metavar="N",
              help="Stop each search after N instances are found.")  # fmt: skip
@click.option("--retrain", is_flag=True,
              help="Retrain a copy of MODEL with the instances; with -o its weights are saved.")  # fmt: skip
@click.option("--reweigh", is_flag=True,
              help="Train a copy of MODEL with weights that make labels independent of protected attributes; with -o it is saved.")  # fmt: skip
@format_option("Output format.")
def command(
    request: ModelRequest,
    protected: str | None,
    domains: Path | None,
    budget: float | None,
    inputs: int | None,
    instances: int | None,
    retrain: bool,
    reweigh: bool,
    form: str,
) -> None:
    """Search for inputs whose prediction changes if only protected attributes change, and compare groups.

    DATA is a table. Text values are encoded as numbers in alphabetical order; MODEL must have been
    trained with the same encoding. If the budget suffices, all inputs are checked. Otherwise, a guided
    search and a random search run, each with the same budget. The guided search uses gradients if MODEL
    has them. If MODEL is the word train, the network of the ADF paper is trained on 70% of DATA. For two
    classes, the groups of each protected attribute are compared by demographic parity, equalized odds,
    predictive parity and calibration.

    \b
    epochzero model fairness net.py:build people.csv --protected sex,age --target income --weights net.pt
    epochzero model fairness train adult.data --protected race --retrain -o fair/

    The UCI files adult.data, german.data, bank.csv and bank-full.csv are recognized by name.

    DIR receives the report (report.html, report.md, tables, figures), instances.csv, retrained.pt and reweighed.pt.

    Exit code 0 if the measurement finished, 2 if the model or the data are invalid.
    """
    out = request.out
    with working(out) as on_progress:
        from epochzero.reports import write_report
        from epochzero_models import measure_fairness
        from epochzero_models.fairness import SearchBudget, load_people
        from epochzero_models.fairness.report import fairness_report, write_instances, write_weights

        if budget is None and inputs is None:
            budget = SECONDS
        people = load_people(
            request.data,
            protected=[word.strip() for word in protected.split(",")] if protected else (),
            target=request.target,
            domains=domains,
            most=request.most,
            seed=request.seed,
            on_progress=on_progress,
        )
        found = measure_fairness(
            _classifier(request, people, on_progress),
            people,
            budget=SearchBudget(budget, inputs, instances),
            retrain=retrain,
            reweigh=reweigh,
            seed=request.seed,
            on_progress=on_progress,
        )
        if out is not None:
            on_progress("writing the report")
            write_report(fairness_report(found), out)
            write_instances(found, people, out)
            write_weights(found, out)
    if form == "json":
        echo_json(found.to_dict())
        return
    _write_text(found, out)


def _classifier(
    request: ModelRequest, people: PeopleTable, on_progress: ProgressCallback
) -> Classifier:
    if request.model != TRAIN:
        return request.classifiers()[0]
    from epochzero_models.classifier import as_classifier
    from epochzero_models.fairness import train_network

    if request.weights:
        raise InputError(
            "train: networks are trained by this command; --weights requires file.py:function"
        )
    training = people.examples.take(people.parts(request.seed)[0])
    network = train_network(training, request.seed, on_progress)
    return as_classifier(network.to(request.device), "ADF's network")


def _write_text(found: Fairness, out: Path | None) -> None:
    from epochzero_models.fairness.report import described, remark

    click.echo(wrapped("Model", f"{found.model}, right on {share_with_interval(found.accuracy)} of {found.rows:,} rows"))  # fmt: skip
    click.echo(wrapped("Protected", f"{', '.join(found.protected)}: {found.variants} variants of each input"))  # fmt: skip
    click.echo(wrapped("Judged", (f"classified differently by them: {share_with_interval(found.discriminated)} of inputs drawn from the "
f"domain, {share_with_interval(found.discriminated_rows)} of the rows")))  # fmt: skip
    disparities = found.groups.disparities if found.groups else ()
    for attribute in found.protected if disparities else ():
        gaps = [disparity for disparity in disparities if disparity.attribute == attribute]
        text = ", ".join(f"{gap.criterion} {share_with_interval(gap.difference)}" for gap in gaps)
        click.echo(wrapped("Groups", f"largest differences by {attribute}: {text}"))
    for cuts in found.groups.mitigations if found.groups else ():
        gap_before, gap = cuts.difference_before, cuts.difference
        effect = "would reduce" if cuts.reduces else "would not reduce"
        text = (
            f"by {cuts.attribute} {effect} the difference in selection: {share(gap_before.value)} before, {share_with_interval(gap)} after; "
            f"accuracy {share(cuts.accuracy_before.value)} before, {share(cuts.accuracy.value)} after"
        )
        click.echo(wrapped(cuts.method.capitalize(), text))
    for search in found.searches:
        text = f"{search.search}: {search.found:,} discriminatory instances in {search.seconds:.1f} s, {100 * search.share:.1f}\xa0% of {search.checked:,} inputs checked"
        click.echo(wrapped("Search", text))
    if text := remark(found):
        click.echo(wrapped("", text))
    for kind, how in ((True, "by one alone"), (False, "depends on")):
        text = ", ".join(f"{driver.attribute} {share(driver.share.value)}" for driver in found.drivers if driver.protected is kind)  # fmt: skip
        if text:
            click.echo(wrapped("Driven", f"{how}: {text}"))
    for example in found.examples[:3]:
        click.echo(wrapped("Example", described(example)))
    if found.retrained is not None:
        after = found.retrained
        text = f"with {after.instances:,} instances: {share_with_interval(after.discriminated)} judged differently; right on {share(after.accuracy.value)} of rows left out, before {share(after.accuracy_before.value)}"
        click.echo(wrapped("Retrained", text))
    for what, why in found.left_out.items():
        click.echo(wrapped("Left out", f"{what}: {why}"))
    if out is not None:
        click.echo(wrapped("Report", str(out / "report.html")))
