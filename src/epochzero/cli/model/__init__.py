"""``epochzero model``: tests of a trained model itself. A test is one file of this folder."""

from __future__ import annotations

import click

from epochzero.cli.group import Group
from epochzero.cli.model.dissect import command as dissect_command
from epochzero.cli.model.evaluate import command as evaluate_command
from epochzero.cli.model.fairness import command as fairness_command
from epochzero.cli.model.generate import command as generate_command
from epochzero.cli.model.mutate import command as mutate_command

__all__ = ["command"]


@click.group(cls=Group, name="model")
def command() -> None:
    """Test a trained classifier itself: the fault may sit in the model or its data.

    MODEL is file.py:function, code of yours that gives a torch module (with --weights for its state
    dict), or a file of TorchScript (.pt), ONNX (.onnx) or Keras 3 (.keras). Pickled models are refused.

    DATA is file.py:function, code of yours that gives a dataset or loader of torch or arrays, a file of
    arrays (.npz) or a table (.csv), or a folder of images with a folder for each class.

    \b
    epochzero model dissect net.py:build data.py:train --test data.py:test --weights net.pt -o dissected/
    epochzero model evaluate net.py:build test.npz --weights net.pt -o evaluated/
    epochzero model fairness net.py:build people.csv --protected sex,age --weights net.pt -o fair/
    epochzero model generate data.py:train --test data.py:test --evolve full --write models/
    epochzero model mutate train.py --leaf missing_api_call -o mutants/
    """


command.add_command(dissect_command)
command.add_command(evaluate_command)
command.add_command(fairness_command)
command.add_command(generate_command)
command.add_command(mutate_command)
