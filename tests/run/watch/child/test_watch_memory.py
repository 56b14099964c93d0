"""Watching keeps nothing of the job alive, and does not grow."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.run.watch.child.conftest import watched


@pytest.fixture(autouse=True)
def _no_collector() -> Any:
    """What only the collector of cycles would free was kept. Older objects are neither visited nor counted."""
    # The first optimizer of a process is kept by torch itself: it imports its compiler for it.
    _train_once()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def _train_once() -> list[weakref.ref[Any]]:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    refs: list[weakref.ref[Any]] = [weakref.ref(p) for p in model.parameters()]
    for _ in range(3):
        x, y = torch.randn(8, 4), torch.randint(2, (8,))
        hidden = functional.gelu(model[0](x))
        loss = functional.cross_entropy(model(x) + hidden.mean(), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        refs += map(weakref.ref, (x, y, hidden, loss))
    return refs


def test_tensors_die_as_they_would() -> None:
    with watched():
        refs = _train_once()
        alive = [ref() for ref in refs if ref() is not None]
    assert alive == []


def test_a_batch_dies_before_the_loop_ends() -> None:
    model = nn.Linear(4, 2)
    with watched():
        x = torch.randn(8, 4)
        ref = weakref.ref(x)
        out = model(x).detach()
        del x
        assert ref() is None
        seen = weakref.ref(out)
        del out
        assert seen() is None


def test_variables_of_a_function_are_not_kept_by_its_frame() -> None:
    model = nn.Linear(4, 2)

    def train() -> weakref.ref[Any]:
        x = torch.randn(8, 4)
        model(x).sum().backward()
        ref = weakref.ref(x)
        del x
        return ref if ref() is None else weakref.ref(model)

    with watched():
        assert train()() is None


def test_a_model_dies() -> None:
    with watched():
        model = nn.Sequential(nn.Linear(4, 2))
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.randn(3, 4)).sum().backward()
        optimizer.step()
        ref = weakref.ref(model)
        del model, optimizer
        gc.collect()
        assert ref() is None


def test_activations_of_an_evaluation_are_freed_at_once() -> None:
    alive: list[int] = []
    refs: list[weakref.ref[Any]] = []

    class Probe(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            alive.append(sum(ref() is not None for ref in refs))
            refs.append(weakref.ref(x))
            return x + 1

    model = nn.Sequential(nn.Linear(4, 4), *(Probe() for _ in range(8))).eval()
    with watched(), torch.no_grad():
        model(torch.randn(2, 4))
    assert max(alive) <= 2


def _counts() -> tuple[int, int]:
    """Tensors, and objects in all."""
    objects = gc.get_objects()
    return sum(type(one) in (torch.Tensor, nn.Parameter) for one in objects), len(objects)


def test_nothing_grows_over_500_steps() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())

    def steps(count: int) -> None:
        for _ in range(count):
            x, y = torch.randn(8, 4), torch.randint(2, (8,))
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            with torch.no_grad():
                (model(x).argmax(1) == y).float().mean().item()

    with watched(every=50) as heard:
        steps(100)
        heard.clear()
        before = _counts()
        steps(500)
        heard.clear()
        after = _counts()
    assert after[0] <= before[0] + 60
    assert after[1] <= before[1] + 500
