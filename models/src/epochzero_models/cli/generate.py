"""``epochzero model generate``: generates diverse networks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli.layout import counted, wrapped
from epochzero.cli.line import line
from epochzero.cli.output import OutputFolder, echo_json, format_option, seed_option

if TYPE_CHECKING:
    from epochzero_models.generate import Generation


SHOWN = 5


def _shape(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, int, int]:
    sides = value.split("x")
    if len(sides) != 3 or not all(side.isdecimal() and int(side) for side in sides):
        raise click.BadParameter(
            f"{value!r} is not channels, height and width, such as 3x32x32", context, parameter
        )
    return int(sides[0]), int(sides[1]), int(sides[2])


def _range(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    if value is None:
        return None
    low, dash, high = value.partition("-")
    high = high if dash else low
    if not (low.isdecimal() and high.isdecimal() and int(low) <= int(high)):
        raise click.BadParameter(f"{value!r} is not a range, such as 2-6", context, parameter)
    return int(low), int(high)


@click.command(name="generate")
@click.option("--shape", callback=_shape, metavar="CxHxW", required=True,
              help="Shape of the images, such as 3x32x32.")  # fmt: skip
@click.option("--classes", type=click.IntRange(min=2), default=10, show_default=True, help="Number of classes.")  # fmt: skip
@click.option("--count", type=click.IntRange(min=1), default=10, show_default=True, metavar="N",
              help="Number of networks.")  # fmt: skip
@click.option("--blocks", type=click.IntRange(1, 10), default=3, show_default=True,
              help="Maximum number of blocks per network.")  # fmt: skip
@click.option("--cells", type=click.IntRange(1, 10), default=3, show_default=True,
              help="Maximum number of cells per block.")  # fmt: skip
@click.option("--depth", callback=_range, metavar="MIN-MAX",
              help="Number of convolutions in sequence, such as 4 or 2-6.  [default: at least 1]")  # fmt: skip
@click.option("--parameters", callback=_range, metavar="MIN-MAX",
              help="Number of parameters, such as 10000-500000.  [default: at most 20,000,000]")  # fmt: skip
@click.option("--sampling", type=click.Choice(("diverse", "random")), default="diverse", show_default=True,
              help="Maximize differences, or draw at random.")  # fmt: skip
@click.option("--search-steps", type=click.IntRange(min=0), default=1000, show_default=True,
              help="Number of steps of the search for diverse networks.")  # fmt: skip
@click.option(
    "--write", metavar="DIR", type=OutputFolder(), help="Write each network to DIR as a program."
)
@seed_option()
@format_option("Output format.")
def command(
    shape: tuple[int, int, int],
    classes: int,
    count: int,
    blocks: int,
    cells: int,
    depth: tuple[int, int] | None,
    parameters: tuple[int, int] | None,
    sampling: str,
    search_steps: int,
    write: Path | None,
    seed: int,
    form: str,
) -> None:
    """Generate diverse networks for images (FeatureNET), for example to test a tool.

    Networks are drawn from a feature model of blocks and cells with constraints. The search maximizes
    the differences between their features.

    \b
    epochzero model generate --shape 3x32x32 --classes 10 --write networks/

    Each file of --write requires only torch and can be run as a program.

    Exit code 0 if the networks were generated, 2 if that is not possible.
    """
    from epochzero_models import generate as generating

    with line() as shown:
        generation = generating.generate(
            count, shape, classes, blocks=blocks, elements=cells,
            diverse=sampling == "diverse", steps=search_steps, seed=seed, on_progress=shown.show,
            depth=depth or generating.ANY_DEPTH, parameters=parameters or generating.ANY_SIZE,
        )  # fmt: skip
    if write is not None:
        generating.write(generation, write)
    if form == "json":
        echo_json(generation.to_dict())
        return
    _write(generation)
    if write is not None:
        others = " and the others" if count > 1 else ""
        click.echo(wrapped("Written", f"{write}: {generation.networks[0].name}.py{others}"))


def _write(found: Generation) -> None:
    shape = " x ".join(map(str, found.shape))
    click.echo(wrapped("Networks", f"{counted(len(found.networks), 'network')} for images of {shape} and {found.classes} classes"))  # fmt: skip
    if found.distance is not None:
        click.echo(wrapped("Distance", f"{found.distance:.3f} between two of them on average; {found.random_distance:.3f} when drawn at random"))  # fmt: skip
    for network in found.networks[:SHOWN]:
        text = f"{counted(network.plan.parameters, 'parameter')}, depth {network.plan.depth}"
        click.echo(wrapped(network.name, text))
    if len(found.networks) > SHOWN:
        click.echo(wrapped("", f"and {len(found.networks) - SHOWN} more (--format json has all)"))
