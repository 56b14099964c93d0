"""A watched training is the same training, to the last bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from epochzero.run.watch.child.hooks import Hooks
from epochzero.run.watch.child.observer import Observer
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.schedule import Schedule
from tests.run.watch.child.conftest import watched

STEPS = 6


def _batches(shape: tuple[int, ...], classes: int = 3, **settings: Any) -> Iterator[Any]:
    data = TensorDataset(torch.randn(8 * STEPS, *shape), torch.randint(classes, (8 * STEPS,)))
    return iter(DataLoader(data, batch_size=8, shuffle=True, **settings))


def _convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Dropout(0.3), nn.Flatten(), nn.Linear(36, 3),
    )  # fmt: skip


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(functional.dropout(torch.tanh(self.encoder(x)).mean(1), 0.1))


def _plain(model: nn.Module, batches: Iterator[Any], optimizer: Any) -> list[torch.Tensor]:
    told = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        model.eval()
        with torch.no_grad():
            told += [loss.detach(), (model(x).argmax(1) == y).sum(), model(x)]
        model.train()
    return told


def _convolution() -> Any:
    model = _convolutional()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.01)
    return model, _plain(model, _batches((1, 8, 8)), optimizer)


def _attention() -> Any:
    model = _Attention()
    return model, _plain(model, _batches((5, 8)), torch.optim.AdamW(model.parameters()))


def _workers() -> Any:
    model = _convolutional()
    batches = _batches((1, 8, 8), num_workers=2)
    return model, _plain(model, batches, torch.optim.RMSprop(model.parameters()))


def _mixed_precision() -> Any:
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer, told = torch.optim.Adam(model.parameters()), []
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
    for x, y in _batches((6,)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        told.append(loss.detach())
    return model, told


def _accumulation() -> Any:
    model, told = nn.LSTM(4, 3, 2, dropout=0.2, batch_first=True), []
    optimizer = torch.optim.Adagrad(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.1, total_steps=10, cycle_momentum=False
    )
    for number, (x, y) in enumerate(_batches((5, 4))):
        loss = nn.NLLLoss()(functional.log_softmax(model(x)[0][:, -1], 1), y) / 3
        loss.backward()
        told.append(loss.detach())
        if number % 3 == 2:
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=False)
    return model, told


def _adversaries() -> Any:
    one, other = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 4), nn.LeakyReLU(), nn.Linear(4, 1))
    first, second = torch.optim.Adam(one.parameters()), torch.optim.SGD(other.parameters(), 0.1)
    told = []
    for x, _ in _batches((4,)):
        with torch.no_grad():
            made = one(x)
        judged = functional.binary_cross_entropy_with_logits(other(made), torch.zeros(8, 1))
        second.zero_grad()
        judged.backward()
        second.step()
        fooled = functional.softplus(-other(one(x))).mean()
        first.zero_grad()
        fooled.backward()
        first.step()
        told += [judged.detach(), fooled.detach()]
    return nn.ModuleList([one, other]), told


def _closures() -> Any:
    model, told = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)), []
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)
    for x, y in _batches((4,)):

        def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        told.append(torch.as_tensor(optimizer.step(closure)))
    return model, told


def _sparse() -> Any:
    model, told = nn.EmbeddingBag(20, 3, sparse=True), []
    optimizer = torch.optim.SparseAdam(model.parameters())
    for _, y in _batches((1,)):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(torch.randint(20, (8, 4))), y)
        loss.backward()
        optimizer.step()
        told.append(loss.detach())
    return model, told


def _by_hand() -> Any:
    model, told = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 1)), []
    for x, y in _batches((4,)):
        loss = ((model(x).squeeze(1) - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
        told.append(loss.detach())
    return model, told


TRAININGS = (
    _convolution, _attention, _workers, _mixed_precision, _accumulation, _adversaries, _closures,
    _sparse, _by_hand,
)  # fmt: skip


def _everything(train: Callable[[], Any]) -> tuple[list[torch.Tensor], bytes]:
    torch.manual_seed(7)
    model, told = train()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    tensors = [*told, *model.state_dict().values(), *(g.to_dense() for g in gradients)]
    return tensors, torch.get_rng_state().numpy().tobytes()


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("train", TRAININGS)
def test_losses_weights_gradients_and_random_state_are_the_same(
    train: Callable[[], Any], every: int
) -> None:
    expected, state = _everything(train)
    with watched(every) as heard:
        found, after = _everything(train)
    assert after == state
    assert len(found) == len(expected)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert heard.of("iteration")
    assert heard.of("losses")


def test_iterations_that_are_not_inspected_set_up_no_inspection() -> None:
    schedule = Schedule(every=100)
    observer = Observer(Records(), schedule)
    hooks = Hooks(observer)
    hooks.install()
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    spent = []
    for _ in range(101):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).mean().backward()
        optimizer.step()
        spent.append(schedule.spent)
    observer.end()
    hooks.remove()
    assert torch.is_grad_enabled()
    assert spent[0] > 0
    assert spent[98] == spent[1]
    assert spent[100] > spent[98]


def test_of_short_steps_most_are_left_out_and_all_are_counted() -> None:
    seconds = itertools.count(0.0, 1e-6)
    records: list[dict[str, Any]] = []
    schedule = Schedule(clock=lambda: next(seconds))
    observer = Observer(Records(on_record=records.append), schedule)
    hooks = Hooks(observer)
    hooks.install()
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    plan = torch.optim.lr_scheduler.StepLR(optimizer, 9)
    for number in range(1400):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).mean().backward()
        optimizer.step()
        plan.step()
        if number == 1300:
            model.eval()
            with torch.no_grad():
                functional.mse_loss(model(torch.ones(2, 4)), torch.ones(2, 1))
            model.train()
    observer.end()
    hooks.remove()
    of = {kind: [one for one in records if one["kind"] == kind] for kind in ("losses", "cycle")}
    seen = [loss[0] for one in of["losses"] for loss in one["losses"]]
    assert seen[:1000] == list(range(1000))
    assert 50 < len(seen[1000:]) < 100
    assert seen == sorted(set(seen))
    assert [one["iteration"] for one in records if one["kind"] == "evaluation"] == [1301]
    assert records[-1]["iterations"] == 1400
    last = [one for one in records if one["kind"] == "iteration"][-1]
    assert last["scheduled"] == [last["iteration"]]
    orders = {tuple(call[0] for call in one["calls"] if call[0] != "loss") for one in of["cycle"]}
    each = ("backward", "step", "schedule")
    assert orders <= {each, (*each, "clear"), ("clear", *each, "clear")}


def test_inspections_are_counted_against_the_thread_that_trains() -> None:
    seconds = iter((10.0, 0.5, 1.5, 1.5))
    schedule = Schedule(share=0.02, free_s=0.0, clock=lambda: next(seconds))
    assert schedule.due(1000)  # the first call from a thread that was started later
    schedule.spent = 0.01
    assert schedule.due(1000)
    schedule.spent = 0.03
    assert not schedule.due(1000)


def test_nothing_of_us_is_left_in_torch() -> None:
    owners = (torch, torch.Tensor, functional, nn.Module, torch.autograd, torch.optim.Optimizer,
              torch.amp.GradScaler, torch.utils.data.DataLoader, torch.nn.utils)  # fmt: skip
    before = [dict(vars(owner)) for owner in owners]
    codes = [functional.relu.__code__, functional.cross_entropy.__code__]
    with watched():
        pass
    assert [dict(vars(owner)) for owner in owners] == before
    assert [functional.relu.__code__, functional.cross_entropy.__code__] == codes


def test_hooks_can_be_put_in_place_twice() -> None:
    with watched() as outer:
        with watched() as inner:
            _by_hand()
        _by_hand()
    assert 0 < len(inner.of("losses")) < len(outer.of("losses"))
