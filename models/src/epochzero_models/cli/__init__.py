"""``epochzero model``: tests of a trained model. Each test is one file of this package."""

from __future__ import annotations

import click

from epochzero.cli.group import CommandGroup
from epochzero_models.cli.dissect import command as dissect_command
from epochzero_models.cli.evaluate import command as evaluate_command
from epochzero_models.cli.fairness import command as fairness_command
from epochzero_models.cli.generate import command as generate_command
from epochzero_models.cli.mutate import command as mutate_command


@click.group(cls=CommandGroup, name="model")
def command() -> None:
    """Test a trained model: robustness, fairness, out-of-scope inputs.

    MODEL is file.py:function, a function that returns a torch module (with --weights for its state
    dict), or a file: TorchScript (.pt), ONNX (.onnx) or Keras 3 (.keras). Pickled models are rejected.

    DATA is file.py:function, a function that returns a torch dataset, a loader or arrays, or a file:
    arrays (.npz), a table (.csv), or a directory with one subdirectory of images per class.

    \b
    epochzero model dissect net.py:build data.py:train --test data.py:test --weights net.pt -o dissected/
    epochzero model evaluate net.py:build test.npz --weights net.pt -o evaluated/
    epochzero model fairness net.py:build people.csv --protected sex,age --weights net.pt -o fair/
    epochzero model generate --shape 3x32x32 --write networks/
    epochzero model mutate train.py --leaf missing_api_call -o mutants/
    """


command.add_command(dissect_command)
command.add_command(evaluate_command)
command.add_command(fairness_command)
command.add_command(generate_command)
command.add_command(mutate_command)
