"""``epochzero model mutate``: a training program with a known fault in it."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import click

from epochzero.cli.layout import wrapped
from epochzero.cli.output import OutputFolder, echo_json, format_option
from epochzero.errors import InputError

if TYPE_CHECKING:
    from epochzero.models.mutate import Mutant


@click.command(name="mutate")
@click.argument("program", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--leaf", "leaves", multiple=True, metavar="LEAF",
              help="The fault, a leaf of the taxonomy of real faults; may be repeated.")  # fmt: skip
@click.option("--all", "every", is_flag=True, help="All faults that PROGRAM has a place for.")
@click.option("-o", "--out", metavar="DIR", type=OutputFolder(), required=True,
              help="Write the mutants there; files of the same names are replaced.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Chooses one of the places where a fault can be made.")  # fmt: skip
@format_option("Output format.")
def command(
    program: Path, leaves: tuple[str, ...], every: bool, out: Path, seed: int, form: str
) -> None:
    """Bring known faults into PROGRAM, a training with PyTorch, to see what finds them.

    Each fault is a leaf of the taxonomy of real faults by Humbatova et al.; `epochzero explain` lists
    them, and `epochzero explain LEAF` says what is made to find it. PROGRAM is read and not run.

    \b
    epochzero model mutate train.py --leaf missing_api_call -o mutants/
    epochzero model mutate train.py --all -o mutants/

    DIR gets LEAF.py, the program with the fault in one place, and LEAF.json with the line, the old and the
    new text. With --all, faults that PROGRAM has no place for are left out and counted.

    Exit code 0 when there are mutants; 2 when there are none, or PROGRAM or a LEAF cannot be used.
    """
    if bool(leaves) is every:
        raise InputError("give either --leaf, once or more, or --all")
    from epochzero.models.mutate import NoPlaceError, injectable, mutate

    text = _read(program)
    made: list[Mutant] = []
    left_out = []
    for leaf in injectable() if every else dict.fromkeys(leaves):
        try:
            made.append(mutate(text, leaf, seed=seed, name=program.name))
        except NoPlaceError:
            if not every:
                raise
            left_out.append(leaf)
    if not made:
        raise InputError(f"{program}: has no place for any fault; is it a training with PyTorch?")
    notes = [_written(mutant, program, seed, out) for mutant in made]
    if form == "json":
        echo_json({"schema": "epochzero.mutants/1", "mutants": notes, "left_out": left_out})
        return
    for mutant in made:
        _write_text(mutant, program, out)
    if left_out:
        told = f"{len(left_out)} faults that {program.name} has no place for: {', '.join(left_out)}"
        click.echo(wrapped("Left out", told))


def _read(program: Path) -> str:
    try:
        # Line ends stay as they are.
        return program.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{program}: is no text in UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise InputError(f"{program}: cannot be read: {error.strerror}") from error


def _written(mutant: Mutant, program: Path, seed: int, out: Path) -> dict[str, object]:
    note = {**mutant.to_dict(), "program": program.name, "seed": seed}
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{mutant.leaf}.py").write_bytes(mutant.text.encode("utf-8"))
        text = json.dumps(note, indent=2, ensure_ascii=False)
        (out / f"{mutant.leaf}.json").write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from error
    return note


def _write_text(mutant: Mutant, program: Path, out: Path) -> None:
    click.echo(wrapped("Mutant", f"{out / mutant.leaf}.py, {program.name}:{mutant.line}"))
    for mark, lines in (("-", mutant.old), ("+", mutant.new)):
        for line in dedent(lines).splitlines():
            click.echo(f"{'':12}{mark} {line}")
