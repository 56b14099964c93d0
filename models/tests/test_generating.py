"""Networks drawn from the feature model: validity, distance, and the programs written for them."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import traceback
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.nn import functional

from epochzero.check import CheckResult, Limits, Target, check
from epochzero.check.target import read_target
from epochzero.errors import InputError
from epochzero_models.generate import break_one, generate, program, write
from epochzero_models.generate.architecture import architecture_of
from epochzero_models.generate.counting import Solutions
from epochzero_models.generate.faulty_networks import BREAKS
from epochzero_models.generate.feature_model import feature_model
from epochzero_models.generate.plan import NetworkPlan, plan_of
from epochzero_models.generate.sampling import (
    distance,
    diverse_products,
    mean_distance,
    random_products,
)

SHAPE = (3, 9, 8)
MODEL = feature_model(3, 3)
PRODUCTS = random_products(MODEL, 40, seed=1)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks are so small that threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def plans(most: int = 200_000) -> Iterator[NetworkPlan]:
    """Networks that are quick to make."""
    for drawn in PRODUCTS:
        plan = plan_of(architecture_of(drawn), SHAPE, 5)
        if plan.parameters <= most and len(plan.layers) > 1:
            yield plan


def imported(path: Path) -> ModuleType:
    """A program as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- Products ----------------------------------------------------------------------------------


def test_each_constraint_refuses_a_product_that_breaks_it() -> None:
    drawn = next(items for items in PRODUCTS if "Block2_Element2_Cell_Output_Cell" in items)
    assert MODEL.allows(drawn)
    cell = "Block1_Element1_Cell"
    for missing in ("Block1", "Block2_Element1", "Block2_stride", "Input"):
        assert not MODEL.allows(drawn - {missing})
    assert not MODEL.allows(drawn | {"Block1_stride_1x1", "Block1_stride_2x2"})
    assert not MODEL.allows(drawn | {f"{cell}_Input1_Zeros"})
    assert not MODEL.allows(drawn | {"Block1_Element9"})


def test_the_last_block_goes_to_the_classifier_and_its_last_cell_to_no_other() -> None:
    smallest = feature_model(1, 1)
    output = "Block1_Element1_Cell_Output"
    drawn = random_products(smallest, 1)[0]
    assert f"{output}_Block" in drawn
    assert "Block1_Element1_Cell_Output_Cell" not in smallest.features or not smallest.allows(
        drawn - {f"{output}_Block"} | {f"{output}_Cell"}
    )


def test_all_that_is_drawn_is_allowed_and_comes_again_with_its_seed() -> None:
    diverse = diverse_products(MODEL, 6, steps=60, seed=2)
    assert all(map(MODEL.allows, (*PRODUCTS, *diverse)))
    assert diverse == diverse_products(MODEL, 6, steps=60, seed=2)
    assert random_products(MODEL, 3, seed=1) == PRODUCTS[:3] != random_products(MODEL, 3, seed=2)


class Fixed(random.Random):
    """Draws one number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        assert 0 <= self.number < start
        return self.number


@pytest.mark.parametrize("seed", range(20))
def test_each_solution_of_a_size_belongs_to_one_number(seed: int) -> None:
    draw = random.Random(seed)
    variables, sized = 7, {2, 3, 5}
    clauses = [
        tuple(draw.choice((1, -1)) * variable for variable in draw.sample(range(1, 8), 3))
        for _ in range(9)
    ]
    satisfying = {
        true
        for values in product((False, True), repeat=variables)
        for true in [frozenset(at for at, value in enumerate(values, 1) if value)]
        if all(any((literal > 0) == (abs(literal) in true) for literal in each) for each in clauses)
    }
    solutions = Solutions(clauses, variables, sized)
    for size in range(4):
        expected = {true for true in satisfying if len(true & sized) == size}
        assert solutions.count(size) == len(expected)
        drawn = {frozenset(solutions.draw(size, Fixed(n))) for n in range(len(expected))}
        assert drawn == expected


def test_a_set_is_spread_over_the_numbers_of_cells_and_has_no_bare_classifier() -> None:
    generation = generate(40, (3, 16, 16), 10, diverse=False, seed=1)
    depths = [network.plan.depth for network in generation.networks]
    assert min(depths) == 1
    assert max(depths) >= 7


def test_depth_and_parameters_are_limited() -> None:
    limited = generate(8, SHAPE, 5, depth=(2, 3), parameters=(1_000, 30_000), steps=30, seed=2)
    for network in limited.networks:
        assert 2 <= network.plan.depth <= 3
        assert 1_000 <= network.plan.parameters <= 30_000


def test_the_search_never_brings_products_nearer() -> None:
    means = [mean_distance(diverse_products(MODEL, 8, steps=steps, seed=4)) for steps in (0, 20, 200)]  # fmt: skip
    assert means[0] == mean_distance(random_products(MODEL, 8, seed=4))
    assert means[0] <= means[1] <= means[2]
    assert means[2] > means[0] + 0.05


def test_distance_is_that_of_jaccard() -> None:
    assert distance(frozenset("abc"), frozenset("bcd")) == 0.5
    assert distance(frozenset("a"), frozenset("a")) == 0
    assert mean_distance([frozenset("a"), frozenset("b"), frozenset("b")]) == pytest.approx(2 / 3)


def test_products_that_are_not_accepted_are_drawn_anew() -> None:
    wanted = "Block1_stride_2x2"
    assert all(
        wanted in drawn for drawn in random_products(MODEL, 5, accepts=lambda d: wanted in d)
    )
    with pytest.raises(InputError, match="request other depths"):
        random_products(feature_model(1, 1), 1, accepts=lambda _: False)


# -- Networks ----------------------------------------------------------------------------------


def test_a_program_is_as_large_as_its_plan_and_can_be_trained(tmp_path: Path) -> None:
    for number, plan in enumerate(islice(plans(), 6)):
        path = tmp_path / f"net{number}.py"
        path.write_text(program(plan))
        network = imported(path).build()
        assert plan.parameters == sum(weights.numel() for weights in network.parameters())
        logits = network(torch.rand(5, *SHAPE))
        assert logits.shape == (5, 5)
        functional.cross_entropy(logits, torch.arange(5)).backward()
        assert all(weights.grad is not None for weights in network.parameters())
    assert number == 5


def test_networks_are_written_as_programs(tmp_path: Path) -> None:
    generation = generate(2, (1, 8, 8), 10, blocks=1, elements=2, steps=20, seed=5)
    files = write(generation, tmp_path)
    assert [path.name for path in files] == ["model001.py", "model002.py"]
    for path, network in zip(files, generation.networks, strict=True):
        parameters = imported(path).build().parameters()
        assert sum(weights.numel() for weights in parameters) == network.plan.parameters


@pytest.mark.parametrize("mistake", BREAKS)
def test_a_broken_network_fails_in_the_line_that_was_said(mistake: str, tmp_path: Path) -> None:
    possible = [plan for plan in plans() if any(True for _ in BREAKS[mistake](plan))]
    for number, plan in enumerate(possible[:3]):
        broken = break_one(plan, number, mistake)
        path = tmp_path / f"broken{number}.py"
        path.write_text(program(broken.plan))
        module = imported(path)
        images, labels = torch.rand(5, *SHAPE), torch.arange(5)
        with pytest.raises((RuntimeError, IndexError)) as raised:
            functional.cross_entropy(module.build()(images), labels)
        lines = [frame.line for frame in traceback.extract_tb(raised.value.__traceback__)]
        at_loss = "loss" in broken.line
        assert at_loss == (broken.line not in lines)
        assert path.read_text().count(f"        {broken.line}\n") == 1


def test_a_check_finds_a_network_that_lacks_a_class_when_it_runs_it(tmp_path: Path) -> None:
    broken = break_one(next(plans(20_000)), 0, "classifier lacks a class")
    found = checked(program(broken.plan), tmp_path, Target(name="here", here=True, gpus=()))
    assert [(finding.rule, finding.place.code.strip()) for finding in found.findings] == [
        ("dry-run-failed", broken.line)
    ]


def test_a_whole_network_passes_the_check_and_its_memory_is_estimated(tmp_path: Path) -> None:
    plan = max(plans(20_000), key=lambda plan: len(plan.layers))
    found = checked(program(plan), tmp_path, read_target("A100"))
    assert not found.findings
    memory = found.dry[0].memory
    assert memory is not None
    # Weights, gradients and both moments of Adam, in float32.
    assert memory.allocated.high > 4 * 4 * plan.parameters


def checked(source: str, folder: Path, target: Target) -> CheckResult:
    """What a check with a dry run says of a program."""
    (folder / "train.py").write_text(source)
    return check(
        [sys.executable, "train.py", "--batch-size", "8", "--steps", "2"],
        target, folder=folder, environment=dict(os.environ), dry=Limits(seconds=60),
        select=["dry-run-failed", "dry-run-crashed", "dry-run-memory"],
    )  # fmt: skip


def test_reading_alone_finds_layers_in_a_row_that_do_not_fit(tmp_path: Path) -> None:
    single = "Block1_Element1_Cell_Input2_Zeros"
    (drawn,) = random_products(feature_model(1, 1), 1, accepts=lambda drawn: single in drawn)
    broken = break_one(
        plan_of(architecture_of(drawn), SHAPE, 5), 0, "linear layer expects one feature more"
    )
    (tmp_path / "train.py").write_text(program(broken.plan))
    found = check([sys.executable, "train.py"], Target(name="here"), folder=tmp_path)
    assert broken.line in {finding.place.code.strip() for finding in found.findings}
