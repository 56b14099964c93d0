"""A step that runs out of memory gives the gradients that it would have given, or says why it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import epochzero
from epochzero.errors import InputError
from epochzero.run.memory.plan import StepPlan
from tests.run.memory.training import Loss, Trained, cross_entropy, network

TOLERANCE = {"rtol": 2e-4, "atol": 2e-6}
"""Of float32 sums in another order, after four steps of AdamW."""


def _group_norm() -> nn.Module:
    return network(lambda width: nn.GroupNorm(4, width))


def _batch_norm() -> nn.Module:
    return network(nn.BatchNorm1d)


def _sum_of_squares(model: nn.Module, batch: Any) -> Tensor:
    return model(batch["x"]).square().sum() / 1000


def _mean_of_squares(model: nn.Module, batch: Any) -> Tensor:
    return model(batch["x"]).square().mean() + 0.01 * sum(w.norm() for w in model.parameters())


def _class_weights(model: nn.Module, batch: Any) -> Tensor:
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    return functional.cross_entropy(model(batch["x"]), batch["y"], weights)


def _in_batch_negatives(model: nn.Module, batch: Any) -> Tensor:
    images, texts = model(batch["x"]), model(batch["x"] * 0.9)
    return functional.cross_entropy(images @ texts.T, torch.arange(len(images)))


@pytest.mark.parametrize(
    ("make", "loss"),
    [
        (network, cross_entropy),
        (_group_norm, cross_entropy),
        (network, _class_weights),
        (network, _sum_of_squares),
        (network, _mean_of_squares),
    ],
)
def test_a_split_batch_trains_as_the_whole_does(
    tmp_path: Path, make: Callable[[], nn.Module], loss: Loss
) -> None:
    whole = Trained(tmp_path / "whole.json", make=make, loss=loss, size=253)
    limited = Trained(
        tmp_path / "limited.json", make=make, loss=loss, size=253, limit=whole.peak // 2
    )
    assert limited.step.plan.parts > 1
    assert limited.peak <= whole.peak // 2
    assert limited.losses == pytest.approx(whole.losses, rel=1e-5)
    for name, value in whole.state().items():
        torch.testing.assert_close(limited.state()[name], value, **TOLERANCE)


def test_batch_norm_is_not_split_but_computed_again_and_counts_once(tmp_path: Path) -> None:
    whole = Trained(tmp_path / "whole.json", make=_batch_norm, size=512)
    limited = Trained(
        tmp_path / "limited.json", make=_batch_norm, size=512, limit=int(whole.peak / 1.5)
    )
    assert limited.step.plan == StepPlan(checkpoint=True)
    assert "batch norm" in limited.step.refused[0]
    assert limited.losses == pytest.approx(whole.losses, rel=1e-6)
    for name, value in whole.state().items():
        torch.testing.assert_close(limited.state()[name], value, **TOLERANCE)


def test_what_cannot_be_split_trains_within_a_sixth_of_the_memory(tmp_path: Path) -> None:
    def make() -> nn.Module:
        return network(nn.BatchNorm1d, depth=12)

    whole = Trained(tmp_path / "whole.json", make=make, size=2048)
    limited = Trained(tmp_path / "limited.json", make=make, size=2048, limit=int(whole.peak / 6))
    assert limited.step.plan.offload
    assert limited.step.plan.parts == 1
    assert limited.losses == pytest.approx(whole.losses, rel=1e-6)
    for name, value in whole.state().items():
        torch.testing.assert_close(limited.state()[name], value, **TOLERANCE)


def test_batch_norm_may_be_allowed_to_see_micro_batches(tmp_path: Path) -> None:
    whole = Trained(tmp_path / "whole.json", make=_batch_norm, size=512)
    limited = Trained(
        tmp_path / "limited.json",
        make=_batch_norm,
        size=512,
        limit=int(whole.peak / 1.5),
        allow_batch_norm=True,
    )
    assert limited.step.plan == StepPlan(parts=2)


def test_a_loss_that_couples_examples_is_not_split(tmp_path: Path) -> None:
    whole = Trained(tmp_path / "whole.json", loss=_in_batch_negatives, size=512)
    limited = Trained(
        tmp_path / "limited.json", loss=_in_batch_negatives, size=512, limit=int(whole.peak / 1.5)
    )
    assert limited.step.plan == StepPlan(checkpoint=True)
    assert "in-batch negatives" in limited.step.refused[0]
    assert limited.losses == pytest.approx(whole.losses, rel=1e-6)


def test_random_layers_do_not_keep_a_batch_from_being_split(tmp_path: Path) -> None:
    def make() -> nn.Module:
        return network(dropout=0.5)

    whole = Trained(tmp_path / "whole.json", make=make, size=512)
    limited = Trained(tmp_path / "limited.json", make=make, size=512, limit=int(whole.peak / 1.5))
    assert limited.step.plan == StepPlan(parts=2)


class _Failing:
    """A step that runs out where it is told to, after it has changed all that a step may change."""

    def __init__(self, model: nn.Module, fails: int = 1) -> None:
        self.model = model
        self.fails = fails
        self.drawn: list[float] = []

    def __call__(self, batch: Tensor) -> Tensor:
        self.drawn.append(torch.rand(()).item())
        loss = self.model(batch).square().mean()
        if self.fails:
            self.fails -= 1
            loss.backward()
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return loss


def test_nothing_of_a_failed_try_remains(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    gradient = torch.randn(4, 4)
    model[0].weight.grad = gradient.clone()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    failing = _Failing(model)
    batch = torch.randn(8, 4)
    expected = nn.Sequential(*(type(one)(*_arguments(one)) for one in model))
    expected.load_state_dict(model.state_dict())
    expected[0].weight.grad = gradient.clone()
    expected(batch).square().mean().backward()
    epochzero.memory.fit(failing, model=model, optimizer=optimizer, remember=tmp_path / "f")(batch)
    assert failing.drawn[0] == failing.drawn[1]
    for ours, theirs in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


def _arguments(module: nn.Module) -> tuple[int, ...]:
    if isinstance(module, nn.Linear):
        return module.in_features, module.out_features
    assert isinstance(module, nn.BatchNorm1d)
    return (module.num_features,)


def test_when_nothing_helps_the_error_says_what_was_tried(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    failing = _Failing(model, fails=99)
    step = epochzero.memory.fit(
        failing, model=model, optimizer=optimizer, remember=tmp_path / "f", weight=len
    )
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 2\.00 GiB") as caught:
        step(torch.randn(1, 4))
    notes = " ".join(caught.value.__notes__)
    assert "even with offload" in notes
    assert "it has only one example" in notes
    assert "no repeated blocks; pass blocks=" in notes
    assert all(parameter.grad is None for parameter in model.parameters())


def test_other_errors_pass_untouched(tmp_path: Path) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def wrong(batch: Tensor) -> Tensor:
        return model(batch.T).sum()

    step = epochzero.memory.fit(wrong, model=model, optimizer=optimizer, remember=tmp_path / "f")
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        step(torch.randn(3, 4))
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (3, "function of a batch"),
        (lambda: None, "function of one batch"),
        (lambda batch, rest: None, "function of one batch"),
    ],
)
def test_what_is_no_step_is_refused(step: Any, says: str) -> None:
    model = nn.Linear(4, 1)
    with pytest.raises(InputError, match=says):
        epochzero.memory.fit(step, model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1))


def test_a_step_that_does_too_much_is_refused(tmp_path: Path) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def calls_backward(batch: Tensor) -> Tensor:
        loss = model(batch).mean()
        loss.backward()
        return loss

    def steps(batch: Tensor) -> Tensor:
        optimizer.step()
        return model(batch).mean()

    def returns_no_loss(batch: Tensor) -> Tensor:
        return model(batch).detach()

    for step, says in (
        (calls_backward, "changes gradients"),
        (steps, r"calls optimizer\.step"),
        (returns_no_loss, r"shape \(3, 1\) with no graph"),
    ):
        made = epochzero.memory.fit(step, model=model, optimizer=optimizer, remember=tmp_path / "f")
        with pytest.raises(InputError, match=says):
            made(torch.randn(3, 4))
        model.zero_grad()


def test_lbfgs_is_refused() -> None:
    model = nn.Linear(4, 1)
    with pytest.raises(InputError, match="LBFGS"):
        epochzero.memory.fit(
            lambda batch: batch, model=model, optimizer=torch.optim.LBFGS(model.parameters())
        )


def test_a_gradient_scaler_scales_each_part(tmp_path: Path) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    x = torch.randn(8, 16)
    model(x).square().mean().backward()
    expected = [1024 * parameter.grad for parameter in model.parameters()]
    optimizer.zero_grad()
    step = epochzero.memory.fit(
        lambda batch: model(batch).square().mean(),
        model=model,
        optimizer=optimizer,
        backward=lambda loss: scaler.scale(loss).backward(),
        weight=len,
        remember=tmp_path / "f",
    )
    step.plan = StepPlan(parts=3)
    step._is_mean = True
    step(x)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-4)


def test_the_next_run_begins_where_the_last_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = Trained(tmp_path / "whole.json", size=512)
    limit = int(whole.peak / 2)
    first = Trained(tmp_path / "kept.json", size=512, limit=limit)
    assert sum("out of memory" in line for line in caplog.messages) > 1
    caplog.clear()
    second = Trained(tmp_path / "kept.json", size=512, limit=limit)
    assert second.step.plan == first.step.plan
    assert not any("out of memory" in line for line in caplog.messages)
    assert second.losses == pytest.approx(first.losses, rel=1e-6)


@pytest.fixture(scope="module")
def remembered(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str]:
    """A limit of memory, and the key of the plan that a training has found for it."""
    folder = tmp_path_factory.mktemp("remembered")
    limit = int(Trained(folder / "whole.json", size=512).peak / 1.5)
    Trained(folder / "kept.json", size=512, limit=limit)
    (key,) = json.loads((folder / "kept.json").read_text())
    return limit, key


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"KEY": 3}', '{"KEY": {"parts": -1, "checkpoint": 1}}', "[" * 10_000]
)
def test_a_damaged_file_is_as_none(tmp_path: Path, remembered: tuple[int, str], text: str) -> None:
    limit, key = remembered
    (tmp_path / "kept.json").write_text(text.replace("KEY", key))
    again = Trained(tmp_path / "kept.json", size=512, limit=limit)
    assert again.step.plan.parts == 2
    assert json.loads((tmp_path / "kept.json").read_text())[key]["parts"] == 2
