"""``epochzero model dissect``: detects inputs that a model cannot handle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli.layout import counted, wrapped
from epochzero.cli.output import echo_json, format_option
from epochzero_models.cli.options import ModelRequest, model_options, working
from epochzero_models.cli.wording import share, value_with_interval

if TYPE_CHECKING:
    from epochzero_models import Dissection


NAMES = (
    "dissector linear", "dissector log", "dissector exp", "max softmax", "max logit", "energy",
    "Mahalanobis", "relative Mahalanobis", "nearest neighbors", "ViM", "DDU",
)  # fmt: skip
"""Of `dissect.detectors.DETECTORS`, which requires torch."""
_ONE_SIDED = "undefined: all predictions are right, or all are wrong"


@click.command(name="dissect")
@model_options
@click.option("--test", required=True, metavar="DATA",
              help="Data that the model was not trained on: one half for the threshold, the other for the report.")  # fmt: skip
@click.option("--beyond", metavar="DATA",
              help="Inputs that the model should reject, such as data from another source; their labels are ignored.")  # fmt: skip
@click.option("--layers", metavar="NAME,...",
              help="Layers to use.  [default: about six, evenly spaced]")  # fmt: skip
@click.option("--detector", type=click.Choice(NAMES), metavar="NAME",
              help="Detector that the guard uses, such as DDU or 'dissector linear'.  [default: the recommended one]")  # fmt: skip
@click.option("--members", metavar="FILE", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Weights of MODEL from another training run; the ensemble of all weights is also measured.")  # fmt: skip
@click.option("--onnx", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              help="Export the model with the detector.")  # fmt: skip
@click.option("--false-rejections", type=click.FloatRange(0, 1, max_open=True), metavar="SHARE",
              help="Maximum share of correct predictions to reject.  [default: maximize Youden's J]")  # fmt: skip
@format_option("Output format.")
def command(
    request: ModelRequest,
    test: str,
    beyond: str | None,
    layers: str | None,
    detector: str | None,
    members: tuple[Path, ...],
    onnx: Path | None,
    false_rejections: float | None,
    form: str,
) -> None:
    """Detect inputs that MODEL cannot handle, by the agreement of its layers (DISSECTOR) or another detector.

    Detectors are trained on the outputs of several layers. DATA must be the training data of MODEL. The report compares
    how well eleven detectors separate correct from wrong predictions, and test data from inputs of other data (--beyond),
    and recommends one.

    \b
    epochzero model dissect net.py:build data.py:train --test data.py:test --weights net.pt -o dissected/
    epochzero model dissect net.py:build data.py:train --test data.py:test --beyond data.py:other --weights net.pt

    DIR receives the report (report.html, report.md, tables, figures) and the detector, which
    epochzero_models.Guard uses at run time: Guard(model, "dissected/")(inputs).within. --onnx exports the model with
    the detector to one file.

    Exit code 0 if the measurement finished, 2 if the model or the data are invalid.
    """
    out = request.out
    with working(out) as on_progress:
        from epochzero.reports import write_report
        from epochzero_models import Guard, dissect, load_model
        from epochzero_models.dissect.report import dissection_report

        model, tests = request.classifiers()[0], request.load(test, on_progress)
        found = dissect(
            model,
            request.load(request.data, on_progress),
            tests,
            beyond=request.load(beyond, on_progress, labeled=False) if beyond else None,
            layers=[name.strip() for name in layers.split(",") if name.strip()] if layers else None,
            detector=detector,
            members=[load_model(request.model, file, device=request.device) for file in members],
            false_rejections=false_rejections,
            seed=request.seed,
            on_progress=on_progress,
        )
        if onnx is not None:
            Guard(model, found.dissector).export(onnx, tests.inputs[:2])
        if out is not None:
            on_progress("writing the report")
            found.dissector.save(out)
            write_report(dissection_report(found), out)
    if form == "json":
        echo_json(found.to_dict())
        return
    _write_text(found, out)
    if onnx is not None:
        click.echo(wrapped("Exported", str(onnx)))


def _write_text(found: Dissection, out: Path | None) -> None:
    click.echo(wrapped("Model", f"{found.model}, right on {share(found.accuracy.value)} of {counted(found.reported_on, 'example')}"))  # fmt: skip
    click.echo(wrapped("Layers", ", ".join(layer.layer for layer in found.layers[:-1])))
    beyond = {score.name: score for score in found.beyond}
    for score in found.scores:
        chosen = " (used)" if score is found.chosen else ""
        text = f"{score.name}{chosen}: {value_with_interval(score.auc, undefined=_ONE_SIDED)}"
        if score.name in beyond:
            text += f"; inputs beyond {value_with_interval(beyond[score.name].auc)}"
        click.echo(wrapped("AUC", text))
    click.echo(wrapped("Best", f"{found.recommended}, on the examples that chose the thresholds"))
    cut = found.chosen.cut
    rejects = f"below {cut.threshold:.4g} of {found.dissector.name}: {share(cut.caught)} of wrong predictions, {share(cut.false_rejections)} of right ones"
    if found.dissector.name in beyond:
        rejects += f", {share(beyond[found.dissector.name].rejected)} of inputs beyond"
    rejects += f"; accuracy of the rest {share(cut.accuracy)}"
    click.echo(wrapped("Rejects", rejects))
    cost = found.overhead
    click.echo(wrapped("Overhead", f"{cost.guard_ms:.2f} ms in addition to the model's {cost.model_ms:.2f} ms, per input"))  # fmt: skip
    for note in found.notes:
        click.echo(wrapped("Left out", note))
    if out is not None:
        click.echo(wrapped("Report", str(out / "report.html")))
