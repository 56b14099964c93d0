"""Options that all model commands share: how model and data are named and loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, fields
from functools import wraps
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epochzero.cli.layout import counted
from epochzero.cli.line import line
from epochzero.cli.output import out_option, seed_option
from epochzero.errors import InputError

if TYPE_CHECKING:
    from epochzero_models import Classifier, Examples
    from epochzero_models.classifier import ProgressCallback


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


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """MODEL, DATA and the options of every test of a model, as the user gave them."""

    model: str
    data: str
    weights: tuple[str, ...]
    untrained: bool
    target: str | None
    most: int | None
    device: str
    seed: int
    out: Path | None

    def load(self, source: str, on_progress: ProgressCallback, **options: Any) -> Examples:
        """Load the examples of one source; ``options`` of `load_examples`."""
        from epochzero_models import load_examples

        return load_examples(
            source, target=self.target, most=self.most, seed=self.seed, on_progress=on_progress, **options,
        )  # fmt: skip

    def classifiers(self, others: Sequence[str] = ()) -> list[Classifier]:
        """Load MODEL and further models; the first weights belong to MODEL, ``-`` stands for none."""
        from epochzero_models import load_model

        sources = [self.model, *others]
        if len(self.weights) > len(sources):
            raise InputError(
                f"--weights is given {len(self.weights)} times for {counted(len(sources), 'model')}"
            )
        files = [Path(name) if name != "-" else None for name in self.weights]
        return [
            load_model(source, file, device=self.device, seed=self.seed, untrained=self.untrained)
            for source, file in zip_longest(sources, files)
        ]


def model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add MODEL, DATA and the options of every test of a model; the command receives them as a `ModelRequest`."""

    @wraps(command)
    def with_request(**values: Any) -> None:
        shared = {field.name: values.pop(field.name) for field in fields(ModelRequest)}
        command(ModelRequest(**shared), **values)

    decorated: Callable[..., None] = with_request
    for option in reversed(_MODEL):
        decorated = option(decorated)
    return decorated


@contextmanager
def working(out: Path | None) -> Iterator[ProgressCallback]:
    """Show a progress line while the work lasts, and redirect output of the user's code to standard error.

    Args:
        out: directory of a report, whose requirements are checked first; None for none.
    """
    if out is not None:
        from epochzero.reports import require_matplotlib

        require_matplotlib()
    # Keras reads this when it is first imported.
    os.environ.setdefault("KERAS_BACKEND", "torch")
    with redirect_stdout(sys.stderr), line() as shown:
        yield shown.show
