"""Hydra's composition and overrides."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check.findings import SourceLocation
from epochzero.check.program.arguments import parse
from epochzero.check.program.parsers.model import ParsedCommand, ParserSpec
from epochzero.check.program.values import Anything, Constant, Items, Value

FILES = {
    "conf/config.yaml": (
        "defaults:\n  - model: small\n  - optional local: none\n  - _self_\n"
        "lr: 0.1\nname: ${model.kind}-${lr}\nout: ???\nseed: ${oc.env:SEED}\n"
    ),
    "conf/model/small.yaml": "kind: small\nlayers: 2\n",
    "conf/model/large.yaml": "kind: large\nlayers: 9\nextra: {a: 1}\n",
    "conf/opt/adam.yaml": "# @package _global_\nopt: {name: adam}\n",
}
SPEC = ParserSpec(
    "hydra",
    defaults={"config_path": Constant("../conf"), "config_name": Constant("config")},
    place=SourceLocation("src/train.py", 3, 1),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "src").mkdir()
    return tmp_path


def plainly(value: Value) -> object:
    if isinstance(value, Items) and value.kind == "dict":
        keys = [plainly(key) for key in value.keys]
        return dict(zip(keys, [plainly(v) for v in value.values], strict=True))
    return value.value if isinstance(value, Constant) else value


def said(parsed: ParsedCommand) -> list[tuple[str, str, str]]:
    return [(p.kind, p.option, p.near) for p in parsed.problems]


def test_composition_and_interpolation(folder: Path) -> None:
    parsed = parse(SPEC, [], folder)
    assert not parsed.problems
    values = parsed.values
    assert plainly(values["model"]) == {"kind": "small", "layers": 2}
    assert plainly(values["name"]) == "small-0.1"
    assert isinstance(values["out"], Anything)
    assert isinstance(values["seed"], Anything)
    rate = values["lr"]
    assert isinstance(rate, Constant)
    assert rate.origin is not None
    assert (rate.origin.path, rate.origin.line) == ("conf/config.yaml", 5)


def test_a_default_that_is_stored_in_another_package_is_not_missing(folder: Path) -> None:
    config = folder / "conf/run/large.yaml"
    config.parent.mkdir()
    config.write_text(
        "# @package _global_\ndefaults:\n  - /model/small\n  - /extra@_global_\nlr: 0.5\n"
    )
    (folder / "conf/extra.yaml").write_text("more: 1\n")
    (folder / "conf/config.yaml").write_text("defaults:\n  - run: large\nlr: 0.1\n")
    assert not parse(SPEC, [], folder).problems


def test_overrides(folder: Path) -> None:
    argv = ["model=large", "lr=1e-2", "+opt=adam", "model.layers=3", "+new.key=[1,2]", "out=x"]
    values = parse(SPEC, argv, folder).values
    assert plainly(values["model"]) == {"kind": "large", "layers": 3, "extra": {"a": 1}}
    assert plainly(values["name"]) == "large-0.01"
    assert plainly(values["opt"]) == {"name": "adam"}
    assert plainly(values["out"]) == "x"
    assert not parse(SPEC, [*argv, "-m", "hydra.run.dir=x", "~model.extra"], folder).problems


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["lrr=1"], [("unknown", "lrr", "lr")]),
        (["model.layer=1"], [("unknown", "model.layer", "model.layers")]),
        (["model=larg"], [("choice", "model", "large")]),
        (["opt=adam"], [("unknown", "opt", "")]),
        (["+lr=1"], [("conflict", "lr", "")]),
        (["~nothing"], [("unknown", "nothing", "")]),
        (["++lrr=1"], []),
        (["--config-name=other", "x=1"], [("absent", "", "")]),
    ],
)
def test_problems(folder: Path, argv: list[str], found: list[tuple[str, str, str]]) -> None:
    assert said(parse(SPEC, argv, folder)) == found


def test_what_a_config_store_may_hold_is_only_absent(folder: Path) -> None:
    (folder / "conf/config.yaml").write_text("defaults:\n  - base_config\n  - _self_\nlr: 1\n")
    parsed = parse(SPEC, ["epochs=3"], folder)
    assert ([p.kind for p in parsed.problems], bool(parsed.unknowns)) == (["absent"], True)


@pytest.mark.parametrize(
    ("path", "defaults", "words"),
    [
        ("conf/model/small.yaml", "- small", []),
        ("conf/model/small.yaml", "- /model: small", []),
        ("conf/opt/adam.yaml", "- adam", ["+opt=adam"]),
    ],
)
def test_files_that_include_themselves_are_unknown(
    folder: Path, path: str, defaults: str, words: list[str]
) -> None:
    (folder / path).write_text(f"defaults:\n  {defaults}\nkind: x\n")
    parsed = parse(SPEC, words, folder)
    assert not parsed.problems
    assert [one.reason for one in parsed.unknowns] == ["nested too deeply"]


def test_a_choice_of_two_groups_is_none(folder: Path) -> None:
    (folder / "conf/model/small.yaml").write_text("defaults:\n  - {a: b, c: d}\nkind: x\n")
    parsed = parse(SPEC, [], folder)
    assert not parsed.problems
    assert plainly(parsed.values["model"]) == {"kind": "x"}
