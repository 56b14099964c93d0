"""Lightning's command line: sections of classes, files, subcommands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.findings import SourceLocation
from epochzero.check.program.arguments import parse
from epochzero.check.program.model import Program
from epochzero.check.program.parsers.model import OptionSpec, ParsedCommand, ParserSpec
from epochzero.check.program.values import Constant

Read = Callable[..., Program]

FILES = {
    "train.py": """
        import torch
        from lightning.pytorch import LightningDataModule, LightningModule
        from lightning.pytorch.cli import LightningCLI


        class Net(LightningModule):
            def __init__(self, width: int, lr: float = 0.1, name: str = "a"):
                super().__init__()
                open(f"{name}-{width}-{lr}")

            def training_step(self, batch, index):
                open("step")


        class Data(LightningDataModule):
            def __init__(self, root: str = "data", **more):
                super().__init__()


        LightningCLI(Net, datamodule_class=Data)
        """,
    "a.yaml": "model:\n  width: 4\n  lr: 1e-3\ntrainer:\n  max_epochs: 3\n",
}


def parsed(program: Program) -> ParsedCommand:
    (found,) = program.parsed
    return found


def test_the_model_is_made_of_what_the_command_line_and_its_files_say(read: Read) -> None:
    program = read(FILES, "fit", "--config", "a.yaml", "--model.name=b", "--data.other", "1")
    assert parsed(program).problems == ()
    opened = [call.arguments[0] for call in program.calls if call.name == "builtins.open"]
    assert [one.value for one in opened if isinstance(one, Constant)] == ["b-4-1e-3", "step"]


@pytest.mark.parametrize(
    ("arguments", "kind", "option", "near"),
    [
        ("fit", "missing", "--model.width", ""),
        ("fit --model.width 3.5", "type", "--model.width", ""),
        ("fit --model.width=8 --model.lr high", "type", "--model.lr", ""),
        ("fit --model.width=8 --model.widht 3", "unknown", "--model.widht", "--model.width"),
        ("fit --model.width=8 --lr 3", "unknown", "--lr", "--model.lr"),
        ("fitt --model.width=8", "choice", "subcommand", "fit"),
        ("", "missing", "subcommand", ""),
    ],
)
def test_what_is_wrong(read: Read, arguments: str, kind: str, option: str, near: str) -> None:
    (problem,) = parsed(read(FILES, *arguments.split())).problems
    assert (problem.kind, problem.option, problem.near) == (kind, option, near)


@pytest.mark.parametrize(
    "arguments",
    [
        "fit --help", "fit --print_config", "--config a.yaml fit", "fit --config none.yaml",
        "fit --model model.yaml", "fit --model.width=8 --model.lr=inf", "fit --model.width=0",
        "predict --model.width=8 --ckpt_path last --optimizer.lr=3 --trainer.callbacks+=X",
    ],
)  # fmt: skip
def test_what_may_be_right_is_left_alone(read: Read, arguments: str) -> None:
    assert parsed(read(FILES, *arguments.split())).problems == ()


def test_of_classes_that_are_named_on_the_command_line_nothing_is_known(read: Read) -> None:
    text = "from lightning.pytorch.cli import LightningCLI\nLightningCLI()\n"
    assert parsed(read(text, "fit", "--model=Net", "--model.lr=3", "--data.x=1")).problems == ()


WORDS = ["fit", "--", "--model.width", "--model.width=3", "--config", "-c", "--model", "--data.x=", "=",
         "--lr", "-h", "a.yaml", "--model.a.b+=1", "--=", "nan", "1e999"]  # fmt: skip
SPEC = ParserSpec(
    "lightning", (OptionSpec(("model.width",), {"annotation": Constant("int")}, SourceLocation("train.py")),),
    subcommand_required=True,
)  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=8))
def test_any_command_line_is_read(words: list[str]) -> None:
    # Only a folder that is not there, so that no word names a file of this machine.
    assert parse(SPEC, words, Path("/none")).spec is SPEC
