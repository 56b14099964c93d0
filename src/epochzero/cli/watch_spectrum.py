"""``epochzero watch spectrum``: layers and neurons that are active where a model fails."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli.layout import counted, plain, wrapped
from epochzero.cli.output import echo_json, format_option

if TYPE_CHECKING:
    from epochzero.study.neuron_spectrum import Spectrum


_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(name="spectrum")
@click.argument("passing", metavar="PASSING...", nargs=-1, required=True, type=_FILE)
@click.option(
    "--failing",
    metavar="FILE",
    multiple=True,
    required=True,
    type=_FILE,
    help="File with the activity in failing tests; repeatable.",
)
@click.option(
    "--formula",
    type=click.Choice(("tarantula", "ochiai", "dstar")),
    default="tarantula",
    show_default=True,
    help="Suspiciousness formula.",
)
@click.option(
    "--by",
    type=click.Choice(("input", "run")),
    default="input",
    show_default=True,
    help="What counts as a test: each input or each file.",
)
@click.option(
    "-n", "most", type=click.IntRange(min=1), default=10, show_default=True,
    help="Number of neurons to show; JSON contains all.",
)  # fmt: skip
@format_option("Output format.")
def make_spectrum(
    passing: tuple[Path, ...],
    failing: tuple[Path, ...],
    formula: str,
    by: str,
    most: int,
    form: str,
) -> None:
    """Rank layers and neurons by how much more active they are on failing inputs than on passing ones.

    A file records which neurons were active for which inputs. To write one in Python:

    \b
    from epochzero.run.watch.child.neurons import Neurons
    with Neurons(model, "passing.jsonl"):
        model(inputs[is_right])
    with Neurons(model, "failing.jsonl"):
        model(inputs[~is_right])

    A record of a watched training run counts as one test of its layers.

    \b
    epochzero watch spectrum passing.jsonl --failing failing.jsonl
    epochzero watch spectrum good1.jsonl good2.jsonl --failing bad.jsonl --by run --formula ochiai

    Exit code 0 if the scores were computed, 2 if a file is invalid.
    """
    from epochzero.study.neuron_spectrum import read_activity, spectrum, to_dict

    found = spectrum(read_activity(passing, by), read_activity(failing, by), formula)
    if form == "json":
        echo_json(to_dict(found))
    else:
        _write(found, most)


def _write(found: Spectrum, most: int) -> None:
    click.secho(f"{'score':>8}  {'mean':>8}  {'highest':>8}  {'neurons':>8}  layer", bold=True)
    for layer in found.layers:
        numbers = (layer.score, layer.mean, layer.highest)
        click.echo(
            "  ".join(f"{number:8.4f}" for number in numbers)
            + f"  {layer.neurons:>8,}  {plain(layer.layer) or '(model)'}"
        )
    click.secho(f"\n{'score':>8}  {'failing':>8}  {'passing':>8}  neuron", bold=True)
    for neuron in found.neurons[:most]:
        click.echo(
            f"{neuron.score:8.4f}  {neuron.failing:>8,}  {neuron.passing:>8,}"
            f"  {plain(neuron.layer) or '(model)'}[{neuron.unit}]"
        )
    counts = (
        f"{found.formula}; {counted(found.passing, 'passing test')},"
        f" {counted(found.failing, 'failing test')}, {counted(len(found.layers), 'layer')},"
        f" {counted(len(found.neurons), 'neuron')}"
    )
    click.echo()
    click.echo(wrapped("SPECTRUM", counts))
