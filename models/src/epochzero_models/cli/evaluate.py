"""``epochzero model evaluate``: measures accuracy, calibration and robustness of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from epochzero.cli.layout import counted, wrapped
from epochzero.cli.output import echo_json, format_option
from epochzero_models.cli.options import ModelRequest, model_options, working
from epochzero_models.cli.wording import share, value_with_interval

if TYPE_CHECKING:
    from epochzero_models import Evaluation, ModelMeasured


@click.command(name="evaluate")
@model_options
@click.option("--compare", multiple=True, metavar="MODEL",
              help="Another model to compare with MODEL on the same data; repeatable. Its --weights follow those of MODEL; - means none.")  # fmt: skip
@click.option("--group", metavar="COLUMN", help="Column or array of the subgroups.")
@click.option("--attacks/--no-attacks", default=True, show_default=True,
              help="Attack the model with FGSM, PGD and DeepFool.")  # fmt: skip
@click.option("--autoattack", is_flag=True,
              help="Also run AutoAttack, which takes minutes.")  # fmt: skip
@click.option("--attacked", type=click.IntRange(min=1), default=200, show_default=True, metavar="N",
              help="Attack at most N correctly classified examples.")  # fmt: skip
@click.option("--epsilon", type=click.FloatRange(0, 1, min_open=True), default=0.03, show_default=True,
              help="Maximum perturbation by bounded attacks, as a share of the input range.")  # fmt: skip
@format_option("Output format.")
def command(
    request: ModelRequest,
    compare: tuple[str, ...],
    group: str | None,
    attacks: bool,
    autoattack: bool,
    attacked: int,
    epsilon: float,
    form: str,
) -> None:
    """Measure MODEL on DATA that it was not trained on (EvalDNN).

    The report contains top-k accuracy, also by subgroup, calibration, accuracy on corrupted inputs,
    success of attacks, latency, and neuron coverage. Metrics that do not apply to the model are omitted,
    and the report gives the reason.

    \b
    epochzero model evaluate net.py:build test.npz --weights net.pt -o evaluated/
    epochzero model evaluate net.py:small test.csv --target income --group sex --compare net.py:wide

    DIR receives report.html, report.md, each table as CSV and Parquet, and each figure as SVG and PNG.

    Exit code 0 if the measurement finished, 2 if a model or the data are invalid.
    """
    out = request.out
    with working(out) as on_progress:
        from epochzero.reports import write_report
        from epochzero_models import evaluate
        from epochzero_models.evaluate.report import evaluation_report

        found = evaluate(
            request.classifiers(compare),
            request.load(request.data, on_progress, group=group),
            attacks=attacks,
            autoattack=autoattack,
            attacked=attacked,
            epsilon=epsilon,
            seed=request.seed,
            on_progress=on_progress,
        )
        if out is not None:
            on_progress("writing the report")
            write_report(evaluation_report(found), out)
    if form == "json":
        echo_json(found.to_dict())
        return
    for model in found.models:
        _write_model(model, found)
    for difference in found.differences:
        text = f"{difference.model}: {difference.measure} {value_with_interval(difference.difference, '+')}"
        click.echo(wrapped("Difference", text))
    if out is not None:
        click.echo(wrapped("Report", str(out / "report.html")))


def _write_model(model_measured: ModelMeasured, found: Evaluation) -> None:
    top = ", ".join(
        f"top {k} {share(estimate.value)}" for k, estimate in model_measured.top.items()
    )
    click.echo(wrapped("Model", f"{model_measured.model}, on {counted(found.examples, 'example')}"))
    click.echo(wrapped("Accuracy", top))
    if model_measured.groups:
        worst = sorted(model_measured.groups, key=lambda group: group.accuracy.value or 0)
        text = ", ".join(f"{each.group} {share(each.accuracy.value)} (n = {each.examples:,})" for each in worst[:5])  # fmt: skip
        click.echo(wrapped("Subgroups", f"worst first: {text}"))
    click.echo(wrapped("Calibration", f"expected error {value_with_interval(model_measured.calibration_error)}, Brier score {value_with_interval(model_measured.brier)}"))  # fmt: skip
    if model_measured.corruptions:
        last = {each.corruption: each for each in model_measured.corruptions}
        text = ", ".join(f"{name} {share(each.accuracy.value)}" for name, each in last.items())
        click.echo(wrapped("Corrupted", f"at severity 3: {text}"))
    for each in model_measured.attacks:
        distance = "" if each.l2 is None else f", mean distance {each.l2:.3g} (L2)"
        click.echo(wrapped("Attack", f"{each.attack}: fools {share(each.success.value)} of {each.attacked:,}{distance}"))  # fmt: skip
    times = ", ".join(
        f"{time:.3g}\xa0ms for {size}" for size, time in model_measured.latency_ms.items()
    )
    click.echo(wrapped("Latency", f"median time of a batch: {times}"))
    if model_measured.coverage:
        text = ", ".join(
            f"{100 * share:.0f}\xa0% above {threshold:g}"
            for threshold, share in model_measured.coverage[::3]
        )
        click.echo(wrapped("Coverage", f"neurons: {text}"))
    for what, why in model_measured.left_out.items():
        click.echo(wrapped("Left out", f"{what}: {why}"))
