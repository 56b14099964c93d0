"""``epochzero model mutate``: injects known faults into a training script."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import click

from epochzero.cli.layout import wrapped
from epochzero.cli.output import echo_json, format_option, out_option, seed_option
from epochzero.errors import InputError, writing

if TYPE_CHECKING:
    from epochzero_models.mutate import Mutant


@click.command(name="mutate")
@click.argument("program", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--leaf", "leaves", multiple=True, metavar="LEAF",
              help="Fault, a leaf of the taxonomy of real faults; repeatable.")  # fmt: skip
@click.option("--all", "every", is_flag=True, help="Inject every fault that applies to PROGRAM.")
@out_option()
@seed_option("Random seed that selects the place of a fault.")
@format_option("Output format.")
def command(
    program: Path, leaves: tuple[str, ...], every: bool, out: Path, seed: int, form: str
) -> None:
    """Inject known faults into PROGRAM, a PyTorch training script, to test detectors.

    Each fault is a leaf of the taxonomy of real faults by Humbatova et al. `epochzero explain` lists
    them, and `epochzero explain LEAF` names what is designed to detect it. PROGRAM is not run.

    \b
    epochzero model mutate train.py --leaf missing_api_call -o mutants/
    epochzero model mutate train.py --all -o mutants/

    DIR receives LEAF.py, the program with the fault in one place, and LEAF.json with the line, the old
    text and the new text. With --all, faults that do not apply to PROGRAM are skipped and counted.

    Exit code 0 if mutants were written, 2 if none apply or PROGRAM or a LEAF is invalid.
    """
    if bool(leaves) is every:
        raise InputError("pass either --leaf (repeatable) or --all")
    from epochzero_models.mutate import NoPlaceError, injectable, mutate

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
        raise InputError(f"{program}: no fault is applicable; is it a PyTorch training program?")
    notes = [_written(mutant, program, seed, out) for mutant in made]
    if form == "json":
        echo_json({"schema": "epochzero.mutants/1", "mutants": notes, "left_out": left_out})
        return
    for mutant in made:
        _write_text(mutant, program, out)
    if left_out:
        skipped = f"{len(left_out)} faults not applicable to {program.name}: {', '.join(left_out)}"
        click.echo(wrapped("Left out", skipped))


def _read(program: Path) -> str:
    try:
        # Line ends stay as they are.
        return program.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{program} is not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise InputError(f"{program} cannot be read: {error.strerror}") from error


def _written(mutant: Mutant, program: Path, seed: int, out: Path) -> dict[str, object]:
    note = {**mutant.to_dict(), "program": program.name, "seed": seed}
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{mutant.leaf}.py").write_bytes(mutant.text.encode("utf-8"))
        text = json.dumps(note, indent=2, ensure_ascii=False)
        (out / f"{mutant.leaf}.json").write_text(f"{text}\n", encoding="utf-8")
    return note


def _write_text(mutant: Mutant, program: Path, out: Path) -> None:
    click.echo(wrapped("Mutant", f"{out / mutant.leaf}.py, {program.name}:{mutant.line}"))
    for mark, lines in (("-", mutant.old), ("+", mutant.new)):
        for line in dedent(lines).splitlines():
            click.echo(f"{'':12}{mark} {line}")
