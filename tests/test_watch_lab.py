"""The trainings that Watch is measured on: what is written of each fault must hold in its program."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from epochzero import taxonomy
from lab.watch.cases import (
    FAMILIES,
    FRESH,
    PAIRED,
    Case,
    all_cases,
    count_evaluation,
    evaluations,
    family_cases,
    family_programs,
    fresh_cases,
    fresh_programs,
    held_out_families,
    held_out_varied,
    mutated,
    pair_cases,
    pair_held_out,
    pair_programs,
    varied_programs,
)
from tests.catalogs import every

PAIRS = [case for collection in PAIRED for case in pair_cases(collection)]
CASES = [*all_cases(), *fresh_cases(), *family_cases()]
KEYS = {
    "description",
    "symptom",
    "fault",
    "also",
    "layer",
    "also_layers",
    "line",
    "metric",
    "better",
    "healthy",
    "faulty",
}

case = every("case", CASES, attrgetter("id"))


def test_the_bugs_of_the_study_are_there() -> None:
    counts = Counter(case.collection for case in CASES)
    assert counts["bugs"] == 21
    assert counts["keras"] == 8


@case
def test_the_description_is_whole(case: Case) -> None:
    assert case.about.keys() == KEYS | (
        {"base", "edits"} if case.collection in ("mutants", "fresh", "families") else set()
    )
    assert case.about["description"]
    assert case.about["symptom"]


@case
def test_the_causes_are_words_of_the_taxonomy(case: Case) -> None:
    also = case.about["also"]
    assert {case.about["fault"], *also} <= taxonomy.faults().keys()
    assert len(also) <= 2
    assert case.about["fault"] not in also


@case
def test_layers_are_named_once(case: Case) -> None:
    layers = [case.about["layer"], *case.about["also_layers"]]
    assert len(set(layers)) == len(layers)
    assert all(layers[1:])


@case
def test_the_line_stands_once_in_the_faulty_program(case: Case) -> None:
    assert case.about["line"].strip()
    assert "\n" not in case.about["line"]
    assert case.faulty.count(case.about["line"]) == 1


@case
def test_the_programs_differ_and_parse(case: Case) -> None:
    assert ast.dump(ast.parse(case.faulty)) != ast.dump(ast.parse(case.healthy))


@case
def test_the_fault_hurts(case: Case) -> None:
    faulty, healthy = case.about["faulty"]["reaches"], case.about["healthy"]["reaches"]
    assert case.about["better"] in ("higher", "lower")
    assert case.about["metric"]
    assert math.isfinite(healthy)
    if math.isfinite(faulty):
        assert (faulty < healthy) == (case.about["better"] == "higher")


@pytest.mark.parametrize("program", ["", "lr=1, lr=1"])
def test_an_edit_that_does_not_fit_once_is_refused(program: str) -> None:
    with pytest.raises(ValueError, match="times: lr=1"):
        mutated(program, [{"old": "lr=1", "new": "lr=2"}])


DESCRIBED = [
    (folder / "healthy" / f"{name}.py", about)
    for folder, programs in ((FRESH, fresh_programs()), (FAMILIES, family_programs()))
    for name, about in programs.items()
]


def test_each_healthy_training_is_described() -> None:
    for folder, programs in ((FRESH, fresh_programs()), (FAMILIES, family_programs())):
        assert programs.keys() == {path.stem for path in folder.glob("healthy/*.py")}


@every("described", DESCRIBED, lambda described: str(described[0]))
def test_a_healthy_training_beats_its_baseline(described: tuple[Path, Mapping[str, Any]]) -> None:
    program, about = described
    assert about.keys() == {"metric", "better", "reaches", "baseline", "kind"}
    assert about["kind"]
    assert (about["reaches"] > about["baseline"]) == (about["better"] == "higher")
    assert about["metric"] in program.read_text(encoding="utf-8")


def test_half_of_the_families_are_held_out() -> None:
    assert held_out_families() < family_programs().keys()
    assert len(held_out_families()) * 2 == len(family_programs())


def test_the_faults_name_every_word() -> None:
    cases = [*fresh_cases(), *PAIRS]
    named = {case.about["fault"] for case in cases if "fault" in case.about}
    assert named == taxonomy.faults().keys()


@every("made", PAIRS, attrgetter("id"))
def test_faults_of_relations_are_described_and_their_lines_are_in_the_program(made: Case) -> None:
    compile(made.faulty, made.id, "exec")
    if "fault" in made.about:
        assert {made.about["fault"], *made.about.get("also", ())} <= taxonomy.faults().keys()
        assert any(line in made.faulty for line in made.about["lines"])
        assert all(line in made.faulty for line in made.about.get("also_lines", ()))
    else:
        assert "lines" not in made.about


@pytest.mark.parametrize("collection", PAIRED)
def test_held_out_relations_exist(collection: str) -> None:
    cases, programs = pair_cases(collection), pair_programs(collection)
    assert pair_held_out(collection) <= {*programs, *(case.name for case in cases)}
    assert {case.about["base"] for case in cases} <= programs.keys()


VARIED = list(varied_programs().items())


@every("program", VARIED, lambda program: program[0])
def test_a_varied_training_compiles_and_says_what_it_is(program: tuple[str, Path]) -> None:
    name, path = program
    tree = ast.parse(path.read_text(encoding="utf-8"))
    compile(tree, name, "exec")
    assert ast.get_docstring(tree)


def test_half_of_the_varied_trainings_are_held_out() -> None:
    assert held_out_varied() < varied_programs().keys()
    assert len(held_out_varied()) == len(VARIED) // 2


def test_only_held_out_programs_are_counted() -> None:
    varied = {f"varied/{name}" for name in varied_programs()}
    held_out = {f"varied/{name}" for name in held_out_varied()}
    for evaluation in evaluations():
        assert evaluation["programs"]
        assert set(evaluation["programs"]) & varied <= held_out


def test_each_evaluation_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.json"
    count_evaluation("nothing", [], path)
    assert evaluations(path) == []
    for script in ("first", "second"):
        count_evaluation(script, ["varied/b", "varied/a"], path)
    assert [one["script"] for one in evaluations(path)] == ["first", "second"]
    assert evaluations(path)[0]["programs"] == ["varied/a", "varied/b"]
