"""What a program does after its training steps: restored states, evaluated copies, codes and batches of evaluations."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.faults.states import RELATIONS
from tests.run.watch.test_relations import history_of

State = dict[str, torch.Tensor]


def found(train: Callable[[], object]) -> set[str]:
    history = history_of(train)
    return {one.word for row in RELATIONS for one in row.find(history)}


def network(kinds: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, kinds))


def examples(count: int, kinds: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(count, 8)
    return x, x[:, :kinds].argmax(1)


def steps(model: nn.Module, optimizer: Any, x: Any, y: Any, times: int = 12) -> None:
    model.train()
    for rows in torch.randperm(len(x))[: 32 * times].split(32):
        loss = functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def score_of(model: nn.Module, x: Any, y: Any) -> float:
    model.eval()
    with torch.no_grad():
        return float(functional.cross_entropy(model(x), y))


def restores(keep: Callable[[State], State], *, highest: bool, other: bool) -> None:
    x, y = examples(600)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    best, kept = None, model.state_dict()
    for epoch in range(6):
        steps(model, optimizer, x[:400], y[:400])
        # The last epochs are worse, so the best state is not the last one.
        loss = score_of(model, x[400:], y[400:] if epoch < 4 else 3 - y[400:])
        if best is None or (loss > best if highest else loss < best):
            best, kept = loss, keep(model.state_dict())
    restored = network() if other else model
    restored.load_state_dict({name: value.clone() for name, value in kept.items()})
    score_of(restored, x[400:], y[400:])


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize(
    ("keep", "faults"),
    [(copy.copy, {"copy_not_updated"}), (dict, {"copy_not_updated"}), (copy.deepcopy, set())],
)
def test_what_is_restored_was_never_stored(keep: Any, faults: set[str], other: bool) -> None:
    assert found(lambda: restores(keep, highest=False, other=other)) == faults


@pytest.mark.parametrize(("worst", "faults"), [(True, {"copy_not_updated"}), (False, set())])
def test_the_worst_state_is_restored(worst: bool, faults: set[str]) -> None:
    def train() -> None:
        x, y = examples(600)
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        scores, states = [], []
        for _ in range(6):
            steps(model, optimizer, x[:400], y[:400])
            scores.append(score_of(model, x[400:], y[400:]))
            states.append(copy.deepcopy(model.state_dict()))
        at = scores.index(max(scores) if worst else min(scores))
        model.load_state_dict(states[at])

    assert found(train) == faults


@pytest.mark.parametrize(("once", "faults"), [(True, {"copy_not_updated"}), (False, set())])
def test_evaluations_use_weights_of_an_earlier_time(once: bool, faults: set[str]) -> None:
    def train() -> None:
        x, y = examples(600)
        model, asked = network(), network().requires_grad_(False)
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for epoch in range(5):
            steps(model, optimizer, x[:400], y[:400])
            if epoch == 0 or not once:
                asked.load_state_dict(model.state_dict())
            score_of(asked, x[400:], y[400:])

    assert found(train) == faults


@pytest.mark.parametrize(
    ("loaded", "faults"), [(True, set()), (False, {"schedule_wrong", "optimizer_wrong"})]
)
def test_a_training_that_resumes(loaded: bool, faults: set[str]) -> None:
    def objects() -> tuple[Any, Any, Any]:
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), 0.04)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 10) / 20))
        return model, optimizer, schedule

    def train() -> None:
        x, y = examples(1200)
        first = objects()
        steps(*first[:2], x, y, 36)
        first[2].step()
        state = [copy.deepcopy(of.state_dict()) for of in first]
        second = objects()
        for of, stored in list(zip(second, state, strict=True))[: 3 if loaded else 1]:
            of.load_state_dict(stored)
        steps(*second[:2], x, y, 36)

    assert found(train) == faults


@pytest.mark.parametrize(
    ("prefix", "overwrite", "faults"),
    [
        ("", False, set()),
        ("module.", False, {"weight_init_wrong"}),
        ("", True, {"weight_init_wrong"}),
    ],
)
def test_stored_weights_are_not_used(prefix: str, overwrite: bool, faults: set[str]) -> None:
    def train() -> None:
        x, y = examples(400)
        source, model = network(), network()
        steps(source, torch.optim.Adam(source.parameters(), 0.01), x, y)
        state = {prefix + name: value.clone() for name, value in source.state_dict().items()}
        model.load_state_dict(state, strict=False)
        for part in model.modules() if overwrite else ():
            if isinstance(part, nn.Linear):
                part.reset_parameters()
        steps(model, torch.optim.Adam(model.parameters(), 0.02), x, y)

    assert found(train) == faults


@pytest.mark.parametrize(("shift", "faults"), [(1, {"label_range_wrong"}), (0, set())])
def test_classes_of_evaluations_have_other_numbers(shift: int, faults: set[str]) -> None:
    def train() -> None:
        x, y = examples(800)
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), 0.02)
        for _ in range(20):
            steps(model, optimizer, x[:500], y[:500], 16)
            score_of(model, x[500:], (y[500:] + shift) % 4)

    assert found(train) == faults


@pytest.mark.parametrize(("scale", "faults"), [(50.0, {"preprocessing_mismatch"}), (1.0, set())])
def test_targets_of_evaluations_have_another_unit(scale: float, faults: set[str]) -> None:
    def train() -> None:
        x = torch.randn(600, 8)
        y = x[:, :1] + x[:, 1:2]
        model = network(1)
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for epoch in range(80):
            optimizer.zero_grad()
            functional.mse_loss(model(x[:400]), y[:400]).backward()
            optimizer.step()
            if epoch % 20 == 19:
                model.eval()
                with torch.no_grad():
                    functional.mse_loss(model(x[400:]), y[400:] * scale + 3 * scale)
                model.train()

    assert found(train) == faults


@pytest.mark.parametrize(("again", "faults"), [(True, {"data_duplicated"}), (False, set())])
def test_each_evaluation_repeats_its_first_batch(again: bool, faults: set[str]) -> None:
    def train() -> None:
        x, y = examples(600)
        loader = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=40)
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for _ in range(4):
            steps(model, optimizer, x[:400], y[:400])
            model.eval()
            batches = iter(loader)
            with torch.no_grad():
                for _ in range(5):
                    a, b = next(iter(loader)) if again else next(batches)
                    functional.cross_entropy(model(a), b)

    assert found(train) == faults


@pytest.mark.parametrize("alias", [True, False])
def test_a_reference_is_asked_once_in_each_iteration(alias: bool) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
        reference = model if alias else copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        for _ in range(16):
            x = torch.randn(16, 8)
            with torch.no_grad():
                old = reference(x)
            loss = -functional.logsigmoid((model(x) - old) * x[:, :1]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    history = history_of(train)
    texts = [one.text for one in catalogue()["copy_not_updated"](history)]
    assert any("with itself" in text for text in texts) is alias
