"""Options that all model commands share: how model and data are named and loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from epochzero.cli.line import line
from epochzero.cli.output import out_option, seed_option
from epochzero.errors import InputError

if TYPE_CHECKING:
    from epochzero_models import Classifier, Examples
    from epochzero_models.classifier import ProgressCallback


_Command = TypeVar("_Command", bound=Callable[..., Any])

_MODEL = (
    click.argument("model"),
    click.argument("data"),
    click.option("--weights", metavar="FILE", multiple=True,
                 help="State dict of MODEL (.pt, .pth, .safetensors)."),
    click.option("--untrained", is_flag=True, help="Accept randomly initialized weights."),
    click.option("--target", metavar="COLUMN",
                 help="Column or array of the labels.  [default: detected by name]"),
    click.option("--most", type=click.IntRange(min=1), metavar="N",
                 help="Use a random sample of at most N examples."),
    click.option("--device", default="cpu", show_default=True, help="Torch device."),
    seed_option("Random seed, also set for your code."),
    out_option(required=False),
)  # fmt: skip


class Named:
    """The user's data options, for loading several sources in the same way."""

    def __init__(self, target: str | None, most: int | None, seed: int) -> None:
        self.target, self.most, self.seed = target, most, seed

    def load(
        self, source: str, on_progress: ProgressCallback, group: str | None = None
    ) -> Examples:
        """Load the examples of one source."""
        from epochzero_models import load_examples

        return load_examples(
            source,
            target=self.target,
            group=group,
            most=self.most,
            seed=self.seed,
            on_progress=on_progress,
        )


def model_options(command: _Command) -> _Command:
    """Add MODEL, DATA and the options of every test of a model."""
    for option in reversed(_MODEL):
        command = option(command)
    return command


def classifiers(
    sources: Sequence[str], weights: Sequence[str], device: str, seed: int, *, untrained: bool
) -> list[Classifier]:
    """Load the named models; the first weights belong to the first model, ``-`` stands for none."""
    from epochzero_models import load_model

    if len(weights) > len(sources):
        raise InputError(f"--weights is given {len(weights)} times for {len(sources)} models")
    padded = [*weights, *["-"] * (len(sources) - len(weights))]
    return [
        load_model(
            source,
            None if file == "-" else Path(file),
            device=device,
            seed=seed,
            untrained=untrained,
        )
        for source, file in zip(sources, padded, strict=True)
    ]


@contextmanager
def working() -> Iterator[ProgressCallback]:
    """Show a progress line while the work lasts, and redirect output of the user's code to standard error."""
    require_torch()
    # Keras reads this when it is first imported.
    os.environ.setdefault("KERAS_BACKEND", "torch")
    with redirect_stdout(sys.stderr), line() as shown:
        yield shown.show


def require_torch() -> None:
    """Check that torch is installed, before any work is done."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise InputError("Tests of models require torch: pip install 'epochzero[models]'")
