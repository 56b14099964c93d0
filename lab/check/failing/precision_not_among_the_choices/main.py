import click

from loop import evaluate, train


@click.group()
def cli():
    """Trains and evaluates the echo model."""


@cli.command("train")
@click.option("--steps", type=int, default=1000, show_default=True)
@click.option("--precision", type=click.Choice(["fp32", "fp16", "bf16"]), default="fp32")
@click.option("--checkpoint", default="/output/echo.pt")
def train_command(steps, precision, checkpoint):
    train(steps, precision, checkpoint)


@cli.command("evaluate")
@click.option("--checkpoint", default="/output/echo.pt")
def evaluate_command(checkpoint):
    print(evaluate(checkpoint))


if __name__ == "__main__":
    cli()
