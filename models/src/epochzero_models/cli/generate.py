"""``epochzero model generate``: generates diverse networks and trains them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli.layout import counted, wrapped
from epochzero.cli.output import OutputFolder, echo_json, format_option
from epochzero.errors import InputError
from epochzero_models.cli.options import Named, shared_options, working

if TYPE_CHECKING:
    from epochzero_models.generate import Generated, Generation


SHOWN = 5


def _shape(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, int, int] | None:
    if value is None:
        return None
    sides = value.split("x")
    if len(sides) != 3 or not all(side.isdecimal() and int(side) for side in sides):
        raise click.BadParameter(
            f"{value!r} is not channels, height and width, such as 3x32x32", context, parameter
        )
    return int(sides[0]), int(sides[1]), int(sides[2])


@click.command(name="generate")
@click.argument("data", required=False)
@click.option("--test", metavar="DATA", help="Test data for the final measurement.")
@click.option("--shape", callback=_shape, metavar="CxHxW",
              help="Shape of the images, if there is no DATA.")  # fmt: skip
@click.option("--classes", type=click.IntRange(min=2), help="Number of classes, if there is no DATA.  [default: 10]")  # fmt: skip
@click.option("--count", type=click.IntRange(min=1), default=10, show_default=True, metavar="N",
              help="Number of networks.")  # fmt: skip
@click.option("--blocks", type=click.IntRange(1, 10), default=3, show_default=True,
              help="Maximum number of blocks per network.")  # fmt: skip
@click.option("--cells", type=click.IntRange(1, 10), default=3, show_default=True,
              help="Maximum number of cells per block.")  # fmt: skip
@click.option("--sampling", type=click.Choice(("diverse", "random")), default="diverse", show_default=True,
              help="Maximize differences, or draw at random.")  # fmt: skip
@click.option("--search-steps", type=click.IntRange(min=0), default=1000, show_default=True,
              help="Steps of the search for diverse networks.")  # fmt: skip
@click.option("--epochs", type=click.IntRange(min=1), default=12, show_default=True,
              help="Maximum number of epochs per training.")  # fmt: skip
@click.option("--augment", is_flag=True, help="Shift and flip the training images at random.")
@click.option("--write", metavar="DIR", type=OutputFolder(),
              help="Write each network to DIR as a program, with its weights if it was trained.")  # fmt: skip
@shared_options
@format_option("Output format.")
def command(
    data: str | None,
    test: str | None,
    shape: tuple[int, int, int] | None,
    classes: int | None,
    count: int,
    blocks: int,
    cells: int,
    sampling: str,
    search_steps: int,
    epochs: int,
    augment: bool,
    write: Path | None,
    target: str | None,
    most: int | None,
    device: str,
    seed: int,
    out: Path | None,
    form: str,
) -> None:
    """Generate diverse networks for images and train them on DATA (FeatureNET).

    Networks are drawn from a feature model of blocks and cells with constraints. The search maximizes
    the difference of their features. With DATA, the networks are trained and ranked by their accuracy
    on a held-out fifth of DATA.

    \b
    epochzero model generate --shape 3x32x32 --classes 10 --write networks/
    epochzero model generate data.py:train --test data.py:test --write networks/

    Each file of --write requires only torch and can be passed to the other commands as MODEL.

    Exit code 0 if the networks were generated, 2 if that is not possible.
    """
    if data is None and test:
        raise InputError("--test requires DATA")
    if (data is None) == (shape is None):
        raise InputError(
            "missing input shape: pass either DATA or --shape, such as --shape 3x32x32"
        )
    if data is not None and classes is not None:
        raise InputError(
            "--classes requires --shape; with DATA, the labels determine the number of classes"
        )
    with working() as tell:
        from epochzero.reports import require_matplotlib, write_report
        from epochzero_models import generate as generating
        from epochzero_models.generate.measurement import image_shape
        from epochzero_models.generate.report import generation_report

        if out is not None:
            require_matplotlib()
        named = Named(target, most, seed)
        examples = named.load(data, tell) if data else None
        tests = named.load(test, tell) if test else None
        if examples:
            shape, classes = image_shape(examples), int(examples.labels.max()) + 1
        assert shape is not None
        found = generating.generate(
            count, shape, classes or 10, blocks=blocks, elements=cells,
            diverse=sampling == "diverse", steps=search_steps, seed=seed, tell=tell,
        )  # fmt: skip
        if examples:
            found = generating.train_networks(
                found, examples, tests, epochs=epochs, augment=augment, device=device, tell=tell
            )
        if write is not None:
            generating.write(found, write)
        if out is not None:
            tell("writing the report")
            write_report(generation_report(found), out)
    if form == "json":
        echo_json(found.to_dict())
        return
    _write(found)
    if write is not None:
        click.echo(wrapped("Written", f"{write}: {found.networks[0].name}.py and the others"))
    if out is not None:
        click.echo(wrapped("Report", str(out / "report.html")))


def _write(found: Generation) -> None:
    shape = " x ".join(map(str, found.shape))
    click.echo(wrapped("Networks", f"{counted(len(found.networks), 'network')} for images of {shape} and {found.classes} classes"))  # fmt: skip
    if found.distance is not None:
        click.echo(wrapped("Distance", f"{found.distance:.3f} between two of them on average; {found.random_distance:.3f} when drawn at random"))  # fmt: skip
    for one in found.networks[:SHOWN]:
        click.echo(wrapped(one.name, _told(one, found.tested_on)))
    if len(found.networks) > SHOWN:
        click.echo(wrapped("", f"and {len(found.networks) - SHOWN} more (--format json has all)"))


def _told(one: Generated, tested_on: int) -> str:
    told = counted(one.plan.parameters, "parameter")
    if one.score:
        told += f", validated {100 * one.score.validation:.1f}\xa0% after {counted(one.score.epochs, 'epoch')}"
    if one.accuracy and one.accuracy.value is not None and one.accuracy.interval:
        low, high = (100 * bound for bound in one.accuracy.interval)
        told += f"; {100 * one.accuracy.value:.1f}\xa0% of {tested_on:,} test examples ({low:.1f} to {high:.1f})"
    return told
