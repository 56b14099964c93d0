import functools
import math
from pathlib import Path

import click
import torch
from torch import nn


def common(function):
    @click.option("--width", default=8, show_default=True, type=click.IntRange(1, 64))
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@click.group(chain=True)
@click.option("--seed", envvar="SEED", default=0)
@click.pass_context
def cli(context, seed):
    torch.manual_seed(seed)
    context.obj = {"seed": seed, "device": "cuda" if torch.cuda.is_available() else "cpu"}


@cli.command()
@click.option("--learning-rate", "--lr", "rate", type=float, default=1e-3)
@click.option("-n", "--epochs", "count", type=int, default=10)
@click.option("--flag/--no-flag", default=False)
@common
@click.pass_obj
def fit(state, rate, count, flag, width):
    model = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1)).to(state["device"])
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, amsgrad=flag)
    for _ in range(count):
        x = torch.rand(64, 2, device=state["device"])
        loss = (model(x) - x.prod(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    state.update(model=model, loss=loss.item())


@cli.command("then-test")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--grid", default="5x5", callback=lambda _, __, value: tuple(map(int, value.split("x"))))
@click.pass_obj
def test(state, folder, grid):
    model = state.get("model")
    if model is None:
        raise click.UsageError("fit comes first")
    rows, columns = grid
    axes = torch.linspace(0, 1, rows), torch.linspace(0, 1, columns)
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).view(-1, 2).to(state["device"])
    with torch.no_grad():
        error = (model(points).squeeze(1) - points.prod(1)).abs().max().item()
    click.echo(f"{state['loss']:.4f} {error:.4f}")
    if not math.isfinite(error):
        raise SystemExit(3)
    torch.save(model.state_dict(), folder / "surface.pt")


if __name__ == "__main__":
    cli()
