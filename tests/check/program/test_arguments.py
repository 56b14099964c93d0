"""argparse's own semantics, and nothing of the job's code."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochzero.check.findings import SourceLocation
from epochzero.check.program.arguments import parse
from epochzero.check.program.parsers.model import OptionSpec, ParserSpec
from epochzero.check.program.values import (
    Anything,
    Constant,
    External,
    Instance,
    Items,
    Own,
    Value,
)

INT, FLOAT, STR, BOOL = (External(f"builtins.{n}") for n in ("int", "float", "str", "bool"))


def at(line: int) -> SourceLocation:
    return SourceLocation("train.py", line, 1)


def value(said: object, line: int = 0) -> Value:
    """A value as the program would write it; what is a value stays."""
    if isinstance(said, list | tuple):
        return Items(type(said).__name__, tuple(value(item, line) for item in said))
    if said is None or isinstance(said, str | int | float | bool):
        return Constant(said, at(line))
    return said  # type: ignore[return-value]


def option(line: int, *flags: str, **keywords: object) -> OptionSpec:
    return OptionSpec(flags, {name: value(said, line) for name, said in keywords.items()}, at(line))


TRAIN = ParserSpec(
    "argparse",
    (
        option(3, "--lr", type=FLOAT, default=0.1),
        option(4, "-e", "--epochs", type=INT, required=True),
        option(5, "--opt", choices=["sgd", "adam"], default="sgd"),
        option(6, "--amp", action="store_true"),
        option(7, "data", type=External("pathlib.Path")),
    ),
    place=at(2),
)


def problems(spec: ParserSpec, *argv: str) -> list[tuple[str, str, str]]:
    return [(p.kind, p.option, p.value) for p in parse(spec, argv).problems]


def test_what_is_given_comes_from_the_command_line_and_defaults_from_their_line() -> None:
    parsed = parse(TRAIN, ["--epoch", "3", "shards"])
    assert not parsed.problems
    epochs, rate = parsed.values["epochs"], parsed.values["lr"]
    assert isinstance(epochs, Constant)
    assert isinstance(rate, Constant)
    assert (epochs.value, epochs.origin and epochs.origin.path) == (3, "<command>")
    assert (rate.value, rate.origin and rate.origin.line) == (0.1, 3)
    data = parsed.values["data"]
    assert isinstance(data, Instance)
    assert (data.made_by, data.arguments[0]) == (
        "pathlib.Path",
        Constant("shards", data.place),
    )


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        ("-e 3 d --lrr 1", [("unknown", "--lrr", "")]),
        ("-e 3 d --lrr=1", [("unknown", "--lrr", "1")]),
        ("-e 3", [("missing", "data", "")]),
        ("", [("missing", "-e/--epochs", ""), ("missing", "data", "")]),
        ("-e 3 d --opt adm", [("choice", "--opt", "adm")]),
        ("-e x d --lr 1e-3x", [("type", "-e/--epochs", "x"), ("type", "--lr", "1e-3x")]),
        ("d -e", [("missing", "-e/--epochs", "")]),
        ("-e 3 d more", [("unknown", "more", "")]),
        ("-e 3 d --amp=1", [("unknown", "--amp", "1")]),
        ("-e 3 d --lr -0.001", []),
    ],
)
def test_problems(argv: str, found: list[tuple[str, str, str]]) -> None:
    assert problems(TRAIN, *argv.split()) == found


def test_a_problem_says_it_as_argparse_does_and_what_was_meant() -> None:
    (problem,) = parse(TRAIN, ["-e", "3", "d", "--epoc", "--lrr", "2"]).problems[-1:]
    assert problem.kind in ("unknown", "missing")
    (choice,) = parse(TRAIN, ["-e", "3", "d", "--opt", "adm"]).problems
    assert choice.message == (
        "argument --opt: invalid choice: 'adm' (choose from 'sgd', 'adam')"
    ) or choice.message.startswith("argument --opt: invalid choice: 'adm' (choose from sgd")
    assert choice.near == "adam"
    assert choice.place == at(5)


def test_groups_subcommands_and_abbreviations() -> None:
    spec = ParserSpec(
        "argparse",
        (option(2, "--a", action="store_true"), option(3, "--b", action="store_true")),
        exclusive=((0, 1),),
        exclusive_required=(True,),
        subcommands={"train": TRAIN, "test": ParserSpec("argparse", place=at(9))},
        subcommand_required=True,
        subcommand_dest="command",
    )
    assert problems(spec, "--a", "--b", "test") == [("conflict", "--b", "")]
    assert problems(spec, "test")[0][0] == "missing"
    assert problems(spec, "--a", "tset")[0] == ("choice", "command", "tset")
    parsed = parse(spec, ["--a", "train", "-e", "1", "d"])
    assert not parsed.problems
    assert parsed.values["command"] == Constant("train", parsed.values["command"].origin)  # type: ignore[union-attr]
    two = ParserSpec("argparse", (option(1, "--lr-min"), option(2, "--lr-max")))
    assert problems(two, "--lr", "1")[0][:2] == ("ambiguous", "--lr")


def test_what_the_spec_does_not_tell_is_unknown_and_no_problem() -> None:
    spec = ParserSpec(
        "argparse",
        (
            option(1, "--when", type=Own("train.date", "function"), default="today"),
            option(2, "--kind", choices=Anything("a registry")),
            option(3, "--cfg", action=Own("train.Load", "class")),
        ),
    )
    parsed = parse(spec, ["--when", "x", "--kind", "y"])
    assert not parsed.problems
    assert isinstance(parsed.values["when"], Anything)
    assert {u.what for u in parsed.unknowns} == {
        "argument --when",
        "argument --kind",
        "argument --cfg",
    }
    # How many values an own action takes is not known.
    used = parse(spec, ["--cfg", "a", "b", "--nope"])
    assert (used.values, used.problems) == ({}, ())


def test_a_spec_that_is_not_complete_accuses_nobody_of_unknown_arguments() -> None:
    spec = ParserSpec(
        "argparse",
        (option(1, "--lr", type=FLOAT), option(2, "--need", required=True), option(3, "data")),
        complete=False,
    )
    assert problems(spec, "--other", "1", "--lr", "x") == [("type", "--lr", "x")]
    assert problems(spec, "--lr", "1") == [("missing", "--need", "")]


def test_a_text_for_false_is_true_for_bool() -> None:
    spec = ParserSpec("argparse", (option(1, "--amp", type=BOOL, default=True),))
    (problem,) = parse(spec, ["--amp", "False"]).problems
    assert (problem.kind, problem.fatal) == ("type", False)
    value = parse(spec, ["--amp", "False"]).values["amp"]
    assert isinstance(value, Constant)
    assert value.value is True


def test_arguments_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "args.txt").write_text("-e\n4\n")
    spec = ParserSpec("argparse", TRAIN.options, fromfile_prefix_chars="@")
    parsed = parse(spec, ["@args.txt", "d"], tmp_path)
    assert not parsed.problems
    assert parsed.values["epochs"].value == 4  # type: ignore[union-attr]
    lost = parse(spec, ["@none.txt", "d"], tmp_path)
    assert (lost.values, lost.problems, len(lost.unknowns)) == ({}, (), 1)


def test_files_are_not_opened_and_help_ends_the_run(tmp_path: Path) -> None:
    there = tmp_path / "out.txt"
    spec = ParserSpec(
        "argparse",
        (
            option(1, "--out", type=Instance("argparse.FileType", (Constant("w"),))),
            option(2, "--cfg", type=External("json.loads")),
        ),
    )
    out = parse(spec, ["--out", str(there), "--cfg", '{"a": [1]}']).values
    assert isinstance(out["out"], Instance)
    assert out["out"].made_by == "builtins.open"
    assert not there.exists()
    assert isinstance(out["cfg"], Items)
    assert parse(spec, ["--cfg", "{"]).problems[0].kind == "type"
    assert parse(spec, ["-h"]).ends


def test_lists_counts_and_appended_defaults() -> None:
    spec = ParserSpec(
        "argparse",
        (
            option(1, "--layers", nargs="+", type=INT, default=[1, 2]),
            option(2, "-v", action="count", default=0),
            option(3, "--tag", action="append", default=["x"]),
            option(4, "rest", nargs=External("argparse.REMAINDER")),
            option(5, "--amp", action=External("argparse.BooleanOptionalAction")),
        ),
        defaults={"run": Own("train.run", "function")},
    )
    values = parse(spec, ["-vv", "--tag", "y", "--layers", "3", "4", "--no-amp", "a", "--b"]).values

    def told(name: str) -> object:
        found = values[name]
        if isinstance(found, Items):
            return [v.value for v in found.values if isinstance(v, Constant)]
        return found.value if isinstance(found, Constant) else found

    assert told("layers") == [3, 4]
    assert told("v") == 2
    assert told("tag") == ["x", "y"]
    assert told("amp") is False
    assert told("rest") == ["a", "--b"]
    assert told("run") == Own("train.run", "function")


def test_a_suppressed_default_is_neither_converted_nor_set() -> None:
    spec = ParserSpec(
        "argparse", (option(1, "--seed", type=INT, default=External("argparse.SUPPRESS")),)
    )
    parsed = parse(spec, [])
    assert not parsed.problems
    assert not parsed.values


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(
    ["-e", "3", "--epochs=2", "--lr", "1", "x", "--opt", "adam", "--o", "--amp", "--", "-1", "é", ""]
), max_size=8))  # fmt: skip
def test_it_agrees_with_argparse(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=True)
    parser.error = _raise  # type: ignore[method-assign]
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("-e", "--epochs", type=int, required=True)
    parser.add_argument("--opt", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("data")
    parsed = parse(TRAIN, argv)
    try:
        expected = vars(parser.parse_args(argv))
    except _RefusedError:
        assert parsed.problems
        return
    assert not parsed.problems
    found = {
        name: v.arguments[0] if isinstance(v, Instance) else v for name, v in parsed.values.items()
    }
    assert {n: v.value for n, v in found.items() if isinstance(v, Constant)} == expected


class _RefusedError(Exception):
    pass


def _raise(message: str) -> None:
    raise _RefusedError(message)


# -- Other libraries -----------------------------------------------------------------------------

CLICK = ParserSpec(
    "click",
    (
        option(1, "--lr", type=FLOAT, required=True),
        option(2, "-n", "--epochs", "rounds", default=3),
        option(3, "--amp/--no-amp", default=True),
        option(4, "--opt", type=Instance("click.Choice", (value(["sgd", "adam"]),))),
        option(5, "--tag", multiple=True),
        option(6, "-v", "verbose", count=True),
        option(7, "--size", nargs=2, type=INT),
        option(8, "data"),
        option(9, "--part", type=Instance("click.IntRange", (value(0), value(9)))),
    ),
    place=at(10),
)


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        ("--lr 1 d", []),
        ("--lr=1 d --part 10", [("type", "--part", "10")]),
        ("d", [("missing", "--lr", "")]),
        ("--lr 1", [("missing", "DATA", "")]),
        ("--lr x d", [("type", "--lr", "x")]),
        ("--lr 1 -n x d", [("type", "--epochs", "x")]),
        ("--lr 1 d --opt adm", [("choice", "--opt", "adm")]),
        ("--lr 1 d --epoch 3", [("unknown", "--epoch", ""), ("unknown", "3", "")]),
        ("--lr 1 d e", [("unknown", "e", "")]),
        ("d --lr", [("missing", "--lr", "")]),
    ],
)
def test_click(argv: str, found: list[tuple[str, str, str]]) -> None:
    assert problems(CLICK, *argv.split()) == found


def test_click_values() -> None:
    argv = "--lr 1 -n4 --no-amp --tag a --tag b -vv --size 2 3 d"
    values = parse(CLICK, argv.split()).values
    assert {n: plainly(v) for n, v in values.items()} == {
        "lr": 1.0, "rounds": 4, "amp": False, "opt": None, "tag": ("a", "b"), "verbose": 2,
        "size": (2, 3), "data": "d", "part": None,
    }  # fmt: skip


def test_click_groups_and_environment() -> None:
    group = ParserSpec(
        "click",
        (option(1, "--debug", is_flag=True), option(2, "--key", required=True, envvar="KEY")),
        subcommands={"train": CLICK},
        subcommand_required=True,
    )
    assert problems(group, "--debug", "train", "--lr", "1", "d") == []
    assert problems(group, "trian") == [("choice", "COMMAND", "trian")]
    assert problems(group) == [("missing", "COMMAND", "")]


def test_what_is_left_by_options_that_are_not_known_is_not_judged() -> None:
    spec = ParserSpec("click", CLICK.options, complete=False)
    parsed = parse(spec, ["--other", "1", "d", "--lr", "x"])
    assert [p.option for p in parsed.problems] == ["--lr"]
    assert isinstance(parsed.values["data"], Anything)


ABSL = ParserSpec(
    "absl",
    (
        option(1, "lr", define="DEFINE_float", default=0.1, lower_bound=0.0),
        option(2, "steps", define="DEFINE_integer", required=True),
        option(3, "amp", define="DEFINE_bool", default=True),
        option(4, "opt", define="DEFINE_enum", enum_values=["sgd", "adam"], default="sgd"),
        option(5, "dirs", define="DEFINE_list", default=[]),
    ),
)


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        ("--steps=3 -lr 0.5 --noamp --dirs=a,b --v=1", []),
        ("--steps 1.5", [("type", "--steps", "1.5")]),
        ("--lr=1", [("missing", "--steps", "")]),
        ("--steps=1 --lr=-1", [("type", "--lr", "-1")]),
        ("--steps=1 --opt=adm", [("choice", "--opt", "adm")]),
        ("--steps=1 --step=2", [("unknown", "--step", "2")]),
        ("--steps=1 --amp=maybe", [("type", "--amp", "maybe")]),
        ("--steps=1 rest -- --any", []),
    ],
)
def test_absl(argv: str, found: list[tuple[str, str, str]]) -> None:
    # What could not be converted is also not given.
    said = problems(ABSL, *argv.split())
    assert said == found


def test_dataclasses_of_transformers() -> None:
    spec = ParserSpec(
        "hf",
        (
            option(1, "model_name", annotation="str"),
            option(2, "lr", annotation="float", default=5e-5),
            option(3, "fp16", annotation="bool", default=False),
            option(4, "shuffle", annotation="bool", default=True),
            option(5, "layers", annotation="Optional[List[int]]", default=None),
            option(6, "split", annotation="Literal['train', 'test']", default="train"),
            option(7, "seed", annotation="int | None", default=None),
        ),
    )
    values = parse(
        spec, ["--model-name", "m", "--fp16", "--no_shuffle", "--layers", "1", "2", "--seed", "3"]
    ).values
    assert {n: plainly(v) for n, v in values.items()} == {
        "model_name": "m", "lr": 5e-5, "fp16": True, "shuffle": False, "layers": [1, 2],
        "split": "train", "seed": 3,
    }  # fmt: skip
    assert problems(spec) == [("missing", "--model_name/--model-name", "")]
    assert problems(spec, "--model_name", "m", "--fp16", "maybe")[0][0] == "type"
    assert problems(spec, "--model_name", "m", "--split", "dev")[0][0] == "choice"
    (unknown,) = parse(spec, ["--model_name", "m", "--lrr", "1"]).problems
    assert unknown.near == "--lr"
    assert unknown.message.startswith("ValueError: Some specified arguments are not used")


def test_fire() -> None:
    spec = ParserSpec(
        "fire",
        (option(1, "data"), option(2, "lr", default=0.1), option(3, "amp", default=False)),
    )
    values = parse(spec, ["--lr=1e-2", "d", "--amp"]).values
    assert {n: plainly(v) for n, v in values.items()} == {"data": "d", "lr": 0.01, "amp": True}
    assert problems(spec, "--lr", "1") == [("missing", "--data", "")]
    assert problems(spec, "d", "--lrr", "1") == [("unknown", "--lrr", "")]
    assert parse(spec, ["d", "--", "--help"]).unknowns


def plainly(value: Value) -> object:
    if isinstance(value, Items):
        items = [plainly(item) for item in value.values]
        return tuple(items) if value.kind == "tuple" else items
    return value.value if isinstance(value, Constant) else value


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["click", "absl", "fire", "hydra"]),
    st.lists(st.text(alphabet="-=+~ abn01.,/@:${}[]é\n", max_size=8), max_size=6),
)
def test_no_command_line_breaks_a_reader(kind: str, argv: list[str]) -> None:
    spec = ParserSpec(kind, CLICK.options if kind == "click" else ABSL.options)  # type: ignore[arg-type]
    parse(spec, argv, Path("nowhere"))
