"""Relations between calls, data, states and ranks: found in a few iterations of a faulty training, silent in a correct one."""

from __future__ import annotations

import copy
import runpy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from epochzero.run.watch.child.records import rank_path
from epochzero.run.watch.child.schedule import Schedule
from epochzero.run.watch.faults import CURVES, RELATIONS, catalogue
from epochzero.run.watch.faults.parallel import RELATIONS as PARALLEL
from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.run.watch.model import PROOFS, EvidenceKind, TrainingFinding
from epochzero.run.watch.record_reader import RecordFileReader
from tests.run.watch.child.conftest import watched

Training = Callable[[], object]


def history_of(train: Training) -> TrainingHistory:
    torch.manual_seed(0)
    with watched() as heard:
        train()
    assert heard.of("failed") == []
    return read_records(heard)


def curves(word: str, history: TrainingHistory) -> list[TrainingFinding]:
    return [found for row in CURVES if row.word == word for found in row.find(history)]


def violations(history: TrainingHistory) -> list[TrainingFinding]:
    return [one for row in RELATIONS for one in row.find(history)]


def words(train: Training) -> set[str]:
    return {one.word for one in violations(history_of(train))}


def in_order(*order: str, scale: float = 0.0, times: int = 12, divide: float = 1.0) -> Training:
    """A training whose iterations make these calls, such as ``loss clear backward step``."""

    def train() -> None:
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=max(scale, 1.0), enabled=scale > 0)
        loss = torch.zeros(())
        for _ in range(times):
            for call in order:
                if call == "loss":
                    loss = functional.cross_entropy(model(torch.randn(8, 4)), torch.arange(8) % 3)
                calls: dict[str, Callable[[], object]] = {
                    "loss": lambda: None,
                    "clear": optimizer.zero_grad,
                    "clear_model": model.zero_grad,
                    "backward": (loss / divide).backward,
                    "scaled backward": lambda loss=loss: scaler.scale(loss).backward(),
                    "unscale": lambda: scaler.unscale_(optimizer),
                    "clip": lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0),
                    "norm": lambda: nn.utils.clip_grad_norm_(model.parameters(), float("inf")),
                    "step": optimizer.step,
                    "scaler step": lambda: (scaler.step(optimizer), scaler.update()),
                    "update": scaler.update,
                    "minus backward": lambda loss=loss: (-loss).backward(),
                }
                calls[call]()

    return train


@pytest.mark.parametrize(
    ("order", "word"),
    [
        ("loss backward clear step", "backward_missing"),
        ("loss backward clear_model step", "backward_missing"),
        ("loss clear backward step clip", "gradient_clipping_wrong"),
        ("loss clear minus backward step", "loss_wrong"),
        ("clear loss backward clear loss backward step", "accumulation_wrong"),
        ("clear loss backward loss backward step", "accumulation_wrong"),
    ],
)
def test_calls_in_a_wrong_order(order: str, word: str) -> None:
    found = violations(history_of(in_order(*_calls(order))))
    assert [one.word for one in found] == [word]
    assert found[0].place is not None
    assert found[0].since <= 1


@pytest.mark.parametrize(
    "order",
    [
        "clear loss backward step",
        "loss backward step clear",
        "loss backward step clear_model",
        "loss clear backward clip step",
        "loss clear backward step norm",
        "loss backward loss backward step clear",
    ],
)
def test_calls_in_a_right_order(order: str) -> None:
    divide = 2.0 if order.count("loss") > 1 else 1.0
    assert words(in_order(*_calls(order), divide=divide)) == set()


@pytest.mark.parametrize(
    ("order", "word"),
    [
        ("loss clear scaled backward clip scaler step", "gradient_clipping_wrong"),
        ("loss clear scaled backward step", "gradient_scaling_wrong"),
        ("loss clear scaled backward unscale clip scaler step", ""),
        ("loss clear scaled backward unscale step update", ""),
    ],
)
def test_a_scaler_around_other_calls(order: str, word: str) -> None:
    assert words(in_order(*_calls(order), scale=256.0)) == set(filter(None, [word]))
    # A scaler that is switched off changes nothing.
    assert words(in_order(*_calls(order))) == set()


def _calls(order: str) -> Iterator[str]:
    """``scaled backward`` and the like are one call."""
    pieces = iter(order.split())
    for piece in pieces:
        two = piece in ("scaled", "scaler", "minus")
        yield f"{piece} {next(pieces)}" if two else piece


def test_gradients_that_are_put_back_are_no_gradients_that_are_lost() -> None:
    def train() -> None:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(6):
            model(torch.randn(8, 4)).square().mean().backward()
            changed = [parameter.grad.sign() for parameter in model.parameters()]  # type: ignore[union-attr]
            optimizer.zero_grad()
            for parameter, gradient in zip(model.parameters(), changed, strict=True):
                parameter.grad = gradient
            optimizer.step()
            optimizer.zero_grad()

    assert words(train) == set()


def _steps(model: nn.Module, loss: Callable[[], Any], times: int = 12, **settings: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.05, **settings)
    for _ in range(times):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


@pytest.mark.parametrize(
    ("lag", "word"), [(0, "labels_wrong"), (1, ""), (2, "labels_wrong"), (-1, "labels_wrong")]
)
@pytest.mark.parametrize("flat", [False, True])
def test_targets_of_a_language_model(lag: int, word: str, flat: bool) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 30))

        def loss() -> Any:
            text = torch.randint(30, (6, 14))
            tokens, target = text[:, 2:11], text[:, 2 + lag : 11 + lag]
            logits = model(tokens)
            if flat:
                return functional.cross_entropy(logits.flatten(0, 1), target.flatten())
            return functional.cross_entropy(logits.transpose(1, 2), target)

        _steps(model, loss)

    assert words(train) == set(filter(None, [word]))


@pytest.mark.parametrize(("settings", "word"), [({}, "loss_wrong"), ({"ignore_index": 0}, "")])
def test_padding_in_the_loss(settings: dict[str, int], word: str) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 30))

        def loss() -> Any:
            text = torch.randint(1, 30, (8, 12))
            text[torch.arange(12) > torch.randint(3, 12, (8, 1))] = 0
            logits = model(text[:, :-1]).transpose(1, 2)
            return functional.cross_entropy(logits, text[:, 1:], **settings)

        _steps(model, loss)

    assert words(train) == set(filter(None, [word]))


class _Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(30, 8), nn.Linear(8, 30)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(tokens) * mask[..., None])


@pytest.mark.parametrize("of_tokens", [True, False])
def test_ends_that_are_ignored_as_padding(of_tokens: bool) -> None:
    def train() -> None:
        model, positions = _Masked(), torch.arange(12)

        def loss() -> Any:
            tokens, last = torch.randint(1, 30, (16, 12)), torch.randint(4, 11, (16, 1))
            tokens[positions >= last] = 0
            mask = (positions <= last).long()
            ignored = tokens == 0 if of_tokens else mask == 0
            labels = tokens.masked_fill(ignored, -100).roll(-1, 1)
            labels[:, -1] = -100
            return functional.cross_entropy(model(tokens, mask).flatten(0, 1), labels.flatten())

        _steps(model, loss)

    assert words(train) == ({"labels_wrong"} if of_tokens else set())


class _Doubled(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x * 2)


@pytest.mark.parametrize("added", [True, False])
def test_noise_that_was_not_added(added: bool) -> None:
    def train() -> None:
        model = _Doubled(6, 6)

        def loss() -> Any:
            noise = torch.randn(64, 6)
            # Nothing holds the noisy input when the loss is called.
            found = model(0.9 * torch.rand(64, 6) + 0.4 * noise)
            return functional.mse_loss(found, noise if added else torch.randn(64, 6))

        _steps(model, loss)

    assert words(train) == (set() if added else {"labels_wrong"})


@pytest.mark.parametrize(("dimension", "word"), [(1, ""), (0, "last_activation_wrong")])
def test_a_softmax_over_the_batch(dimension: int, word: str) -> None:
    def train() -> None:
        model = nn.Linear(4, 3)

        def loss() -> Any:
            logits = model(torch.randn(9, 4)).log_softmax(dim=dimension)
            return functional.nll_loss(logits, torch.arange(9) % 3)

        _steps(model, loss)

    assert word in {*words(train), ""}
    assert (words(train) == set()) == (word == "")


class _Attends(nn.Module):
    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.inside, self.outside = nn.Linear(4, 8), nn.Linear(8, 1)
        self.dimension = dimension

    def forward(self, x: Any) -> Any:
        h = self.inside(x)
        return self.outside(torch.softmax(h @ h.transpose(1, 2), dim=self.dimension) @ h).mean(1)


@pytest.mark.parametrize(("dimension", "found"), [(-1, set()), (1, {"activation_wrong"})])
def test_an_attention_over_queries(dimension: int, found: set[str]) -> None:
    def train() -> None:
        model = _Attends(dimension)
        _steps(model, lambda: model(torch.randn(8, 5, 4)).square().mean())

    assert words(train) == found


@pytest.mark.parametrize(("shift", "found"), [(0, set()), (1, {"labels_wrong"})])
def test_labels_of_the_example_before(shift: int, found: set[str]) -> None:
    def train() -> None:
        model, centers = nn.Linear(10, 4), 2 * torch.randn(4, 10)

        def loss() -> Any:
            labels = torch.randint(4, (48,))
            points = centers[labels] + 0.5 * torch.randn(48, 10)
            return functional.cross_entropy(model(points), labels.roll(shift))

        _steps(model, loss)

    assert words(train) == found


@pytest.mark.parametrize(("divisor", "found"), [(1, set()), (255, {"label_range_wrong"})])
def test_labels_that_were_scaled_to_one_class(divisor: int, found: set[str]) -> None:
    def train() -> None:
        model = nn.Linear(10, 4)

        def loss() -> Any:
            labels = (torch.randint(4, (16,)) / divisor).long()
            return functional.cross_entropy(model(torch.randn(16, 10)), labels)

        _steps(model, loss, times=14)

    assert words(train) == found


def test_contrastive_targets_are_of_one_class_by_design() -> None:
    def train() -> None:
        model = nn.Linear(10, 4)

        def loss() -> Any:
            q = model(torch.randn(16, 10))
            logits = torch.cat([q.square().sum(1, keepdim=True), q @ torch.randn(4, 9)], 1)
            return functional.cross_entropy(logits / 0.1, torch.zeros(16, dtype=torch.long))

        _steps(model, loss, times=14)

    assert words(train) == set()


@pytest.mark.parametrize("rows", [0, 8])
def test_a_part_of_the_batch_that_has_not_arrived(rows: int) -> None:
    def train() -> None:
        model = nn.Linear(10, 1)

        def loss() -> Any:
            x = torch.randn(16, 10)
            x[16 - rows :] = 0
            return functional.mse_loss(model(x), torch.randn(16, 1))

        _steps(model, loss)

    assert words(train) == ({"input_invalid"} if rows else set())


@pytest.mark.parametrize("name", ["average", "reference"])
@pytest.mark.parametrize("follows", [True, False])
def test_a_copy_that_does_not_follow(name: str, follows: bool) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
        names = {name: copy.deepcopy(model).requires_grad_(False)}
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for _ in range(8):
            loss = functional.mse_loss(model(torch.randn(16, 6)), torch.randn(16, 1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if follows:
                for slow, fast in zip(names[name].parameters(), model.parameters(), strict=True):
                    slow.data.lerp_(fast.data, 0.1)
            _evaluate(names[name]) if name == "average" else _refer(names[name])

    found = words(train)
    # A reference is meant to stay.
    assert found == (set() if follows or name == "reference" else {"copy_not_updated"})


def _evaluate(average: nn.Module) -> None:
    with torch.no_grad():
        functional.mse_loss(average(torch.ones(8, 6)), torch.zeros(8, 1)).item()


def _refer(reference: nn.Module) -> None:
    with torch.no_grad():
        functional.mse_loss(reference(torch.ones(8, 6)), torch.zeros(8, 1)).item()


@pytest.mark.parametrize("copied", [True, False])
def test_best_weights_that_were_not_copied(copied: bool) -> None:
    def train() -> None:
        model = nn.Linear(6, 1)
        stored = copy.deepcopy(model.state_dict()) if copied else model.state_dict()
        _steps(model, lambda: model(torch.randn(8, 6)).square().mean(), times=6)
        model.load_state_dict(stored)

    assert words(train) == (set() if copied else {"copy_not_updated"})


def test_parameters_that_stop_changing_are_reported_with_their_iteration() -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Linear(8, 1))
        steps = count()

        def loss() -> Any:
            if next(steps) == 6:
                model[:3].requires_grad_(False)
            return functional.mse_loss(model(torch.randn(16, 6)), torch.randn(16, 1))

        _steps(model, loss)

    found = violations(history_of(train))
    assert [(one.word, one.since) for one in found] == [("parameters_frozen", 6)]


def _scheduled(
    make: Callable[[Any], Any], *, each: str, epochs: int = 4, batches: int = 16
) -> Training:
    def train() -> None:
        model = nn.Linear(6, 2)
        data = TensorDataset(torch.randn(batches * 4, 6), torch.randint(2, (batches * 4,)))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        schedule = make(optimizer)
        for _ in range(epochs):
            for x, y in (
                DataLoader(data, batch_size=4, shuffle=True) if each == "new" else loader(data)
            ):
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()
                if each == "batch":
                    schedule.step()
            if each == "epoch":
                schedule.step()

    def loader(data: Any) -> Any:
        if id(data) not in loaders:
            loaders[id(data)] = DataLoader(data, batch_size=4, shuffle=True)
        return loaders[id(data)]

    loaders: dict[int, Any] = {}
    return train


SCHEDULES = torch.optim.lr_scheduler


@pytest.mark.parametrize(
    ("make", "each", "found"),
    [
        (lambda o: SCHEDULES.StepLR(o, 2, 0.3), "batch", {"schedule_wrong"}),
        (lambda o: SCHEDULES.StepLR(o, 2, 0.3), "epoch", set()),
        (lambda o: SCHEDULES.CosineAnnealingLR(o, T_max=4), "batch", {"schedule_wrong"}),
        (lambda o: SCHEDULES.CosineAnnealingLR(o, T_max=64), "batch", set()),
        (lambda o: SCHEDULES.CosineAnnealingLR(o, T_max=64), "epoch", {"schedule_wrong"}),
        (lambda o: SCHEDULES.CosineAnnealingLR(o, T_max=4), "epoch", set()),
    ],
)
def test_schedules_by_batch_and_by_epoch(
    make: Callable[[Any], Any], each: str, found: set[str]
) -> None:
    assert words(_scheduled(make, each=each)) == found


@pytest.mark.parametrize("called", [True, False])
def test_a_schedule_that_is_never_stepped(called: bool) -> None:
    def train() -> None:
        model = nn.Linear(6, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        if called:
            conditional = SCHEDULES.StepLR(optimizer, 2)
        else:
            forgotten = SCHEDULES.StepLR(optimizer, 2)  # noqa: F841 - that is the fault
        for number in range(32):
            optimizer.zero_grad()
            model(torch.randn(4, 6)).square().mean().backward()
            optimizer.step()
            if called and number > 100:
                conditional.step()

    assert words(train) == (set() if called else {"schedule_wrong"})


_WITHOUT_MODULES = """
import torch
weight = torch.randn(6, 2, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.01)
for _ in range(12):
    loss = torch.nn.functional.mse_loss(torch.randn(4, 6) @ weight, torch.randn(4, 2))
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("clear", "found"),
    [
        ("", {"zero_grad_missing"}),
        ("    weight.grad = torch.zeros_like(weight)\n", set()),
        ("    weight.grad = None\n", set()),
        ("    weight.grad.data.zero_()\n", set()),
    ],
)
def test_gradients_of_parameters_without_a_module(
    tmp_path: Path, clear: str, found: set[str]
) -> None:
    """What is left of their gradients is not seen: only the source shows whether they are cleared."""
    program = tmp_path / "train.py"
    program.write_text(_WITHOUT_MODULES + clear)
    assert words(lambda: runpy.run_path(str(program))) & {"zero_grad_missing"} == found


def test_a_model_that_was_only_tried_is_not_mixed_up_with_a_layer_of_its_name() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(6, 2)

        def forward(self, x: torch.Tensor) -> Any:
            return self.head(x)

    def train() -> None:
        tried = Net()
        tried(torch.randn(4, 6))
        head = Net()
        _steps(head, lambda: head(torch.randn(4, 6)).square().mean(), times=12)

    history = history_of(train)
    assert {parameter.name for parameter in history.parameters} == {
        "head.weight", "head.bias", "model1.head.weight", "model1.head.bias",
    }  # fmt: skip
    assert not list(catalogue()["parameters_frozen"](history))


# -- Ranks -------------------------------------------------------------------------------------


def _rank(
    seed: int = 0,
    data: int = 0,
    rate: float = 0.1,
    out: int = 2,
    scale: float = 1.0,
    noise: int = 0,
) -> TrainingHistory:
    """A rank that averages no gradients: with the same data as another it trains the same model.

    Its inputs are scaled, and the noise of its augmentation is drawn with a seed.
    """

    def train() -> None:
        torch.manual_seed(seed)
        model = nn.Linear(6, out)
        optimizer = torch.optim.SGD(model.parameters(), rate)
        draw, augment = (torch.Generator().manual_seed(of) for of in (data, noise))
        for _ in range(10):
            x = torch.randn(16, 6, generator=draw) + noise * torch.randn(16, 6, generator=augment)
            labels = torch.randint(out, (16,), generator=draw)
            optimizer.zero_grad()
            functional.cross_entropy(model(scale * x), labels).backward()
            optimizer.step()

    return history_of(train)


@pytest.mark.parametrize(
    ("other", "found", "text"),
    [
        ({"data": 1}, {"ranks_differ"}, "are not averaged"),
        ({"data": 1, "seed": 1}, {"ranks_differ"}, "a model of its own"),
        ({"data": 1, "rate": 0.2}, {"ranks_differ"}, "learning rates of the ranks are 0.1, 0.2"),
        ({}, {"ranks_repeat_data"}, "same examples"),
        ({"data": 1, "scale": 0.0}, {"input_invalid", "ranks_differ"}, ""),
        # What is split over ranks has the same batch, and parameters of its own.
        ({"seed": 1}, set(), ""),
        # Stages of a pipeline.
        ({"data": 1, "seed": 1, "out": 4}, set(), ""),
    ],
)
def test_ranks_are_compared(other: dict[str, Any], found: set[str], text: str) -> None:
    together = replace(_rank(), ranks={1: _rank(**other)})
    violated = violations(together)
    assert {one.word for one in violated} == found
    assert all(text in one.text for one in violated)


def test_a_rank_that_trains_alone_before() -> None:
    def train(before: int) -> None:
        torch.manual_seed(0)
        model = nn.Linear(6, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        first = {name: value.clone() for name, value in model.state_dict().items()}
        draw = torch.Generator()
        for steps in (before, 10):
            model.load_state_dict(first)
            draw.manual_seed(0)
            for _ in range(steps):
                optimizer.zero_grad()
                labels = torch.randint(2, (16,), generator=draw)
                functional.cross_entropy(
                    model(torch.randn(16, 6, generator=draw)), labels
                ).backward()
                optimizer.step()

    ranks = [history_of(partial(train, before)) for before in (4, 0)]
    together = replace(ranks[0], ranks={1: ranks[1]})
    assert not [finding for finding in violations(together) if finding.word == "ranks_differ"]


def test_a_rank_that_leaves_out_steps() -> None:
    other = replace(_rank(data=1), count=8)
    found = [
        finding
        for finding in violations(replace(_rank(), ranks={1: other}))
        if finding.word == "ranks_differ"
    ]
    assert [finding.text.partition(",")[0] for finding in found] == ["The ranks have trained 10"]


def test_what_ranks_that_split_a_model_by_hand_share_drifts_apart() -> None:
    def rank(seed: int) -> TrainingHistory:
        def train() -> None:
            torch.manual_seed(0)
            shared = nn.Linear(6, 6)
            torch.manual_seed(seed)
            model = nn.Sequential(shared, nn.Linear(6, 2))
            draw = torch.Generator().manual_seed(0)
            _steps(model, lambda: model(torch.randn(16, 6, generator=draw)).square().mean())

        return history_of(train)

    found = [
        finding.text
        for finding in violations(replace(rank(1), ranks={1: rank(2)}))
        if finding.word == "ranks_differ"
    ]
    assert len(found) == 1
    assert "0.weight, which is the same on all of them at the start" in found[0]


def test_ranks_that_augment_the_same_examples() -> None:
    together = replace(_rank(out=9, noise=1), ranks={1: _rank(out=9, noise=2)})
    assert "ranks_repeat_data" in {finding.word for finding in violations(together)}


def _mixed(history: TrainingHistory, every: int, rms: float) -> TrainingHistory:
    """A rank whose weights the program sets after so many steps: those before a step are recorded in a process group alone."""
    iterations, last = [], history.iterations[0].parameters
    for iteration in history.iterations:
        sets = iteration.number % every == 0
        parameters = {
            name: {**of, "before": {"rms": rms} if sets else last[name]["weight"]}
            for name, of in iteration.parameters.items()
        }
        iterations.append(replace(iteration, parameters=parameters))
        last = iteration.parameters
    return replace(history, iterations=tuple(iterations))


@pytest.mark.parametrize(("every", "found"), [(3, set()), (100, {"ranks_differ"})])
def test_ranks_whose_parameters_are_averaged_every_few_steps(every: int, found: set[str]) -> None:
    ranks = [_mixed(_rank(data=seed), every, 1.0) for seed in (0, 1)]
    assert {finding.word for finding in violations(replace(ranks[0], ranks={1: ranks[1]}))} == found


def test_ranks_that_mix_their_weights_with_those_of_a_neighbor() -> None:
    """They are never equal, and need no average of gradients."""
    ranks = [_mixed(_rank(data=seed), 1, 1.0 + 0.1 * seed) for seed in (0, 1)]
    assert not violations(replace(ranks[0], ranks={1: ranks[1]}))


def test_ranks_that_have_a_model_of_their_own_beside_one_that_they_share() -> None:
    def rank(seed: int) -> TrainingHistory:
        def train() -> None:
            torch.manual_seed(0)
            shared = nn.Linear(6, 4)
            torch.manual_seed(seed)
            expert = nn.Linear(4, 2)
            parts = [*shared.parameters(), *expert.parameters()]
            optimizer = torch.optim.SGD(parts, 0.1)
            draw = torch.Generator().manual_seed(seed)
            for _ in range(10):
                x, wanted = (torch.randn(8, n, generator=draw) for n in (6, 2))
                optimizer.zero_grad()
                functional.mse_loss(expert(shared(x)), wanted).backward()
                for parameter in shared.parameters():
                    parameter.grad = torch.ones_like(parameter)  # As averaged.
                optimizer.step()

        return history_of(train)

    together = replace(rank(1), ranks={1: rank(2)})
    found = [one for one in violations(together) if one.word == "ranks_differ"]
    assert {one.kind for one in found} == {EvidenceKind.STATE}


def _sharing(history: TrainingHistory, ranks: int = 2) -> TrainingHistory:
    """The history of a rank whose weight is split over ranks, and whose bias each of them has."""

    def spread(iteration: Any) -> Any:
        shards = {"dimensions": 1, "ranks": list(range(ranks))}
        parameters = {
            name: {**values, "sharded": {**shards, "placements": [0 if name == "weight" else None]}}
            for name, values in iteration.parameters.items()
        }
        return replace(iteration, parameters=parameters)

    return replace(history, iterations=tuple(map(spread, history.iterations)))


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"data": 1}, "read different batches"),
        ({"seed": 1}, "get different losses of the same batch"),
        ({}, ""),
    ],
)
def test_ranks_that_share_a_model_have_the_same_batches_and_losses(
    other: dict[str, Any], text: str
) -> None:
    together = replace(_sharing(_rank()), ranks={1: _sharing(_rank(**other))})
    found = [one.text for row in PARALLEL for one in row.find(together)]
    assert [text in each for each in found] == ([True] if text else [])


@pytest.mark.parametrize(("shift", "found"), [(0.0, 0), (2.0, 1)])
def test_statistics_of_other_data_on_each_rank(shift: float, found: int) -> None:
    def rank(seed: int, moved: float) -> TrainingHistory:
        def train() -> None:
            model = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 2))
            draw = torch.Generator().manual_seed(seed)
            _steps(
                model,
                lambda: model(torch.randn(32, 6, generator=draw) + moved).square().mean(),
                times=40,
            )

        history = history_of(train)
        # They are recorded of the ranks of a process group alone.
        values = {
            f"{what}{n}": value + what.startswith("mean") * moved
            for what, value in (("mean", 0.0), ("variance", 1.0))
            for n in range(6)
        }
        iterations = tuple(
            replace(iteration, statistics={"0": values}) for iteration in history.iterations
        )
        return replace(history, iterations=iterations)

    together = replace(rank(0, 0.0), ranks={1: rank(1, shift)})
    signs = [one for row in PARALLEL for one in row.find(together)]
    assert len(signs) == found
    assert all("running mean of 0 differs" in one.text for one in signs)


@pytest.mark.parametrize(("seed", "found"), [(0, set()), (1, {"data_leaked"})])
def test_ranks_that_split_the_examples_differently(seed: int, found: set[str]) -> None:
    def rank(number: int, split: int) -> TrainingHistory:
        def train() -> None:
            torch.manual_seed(0)
            x = torch.randn(60, 6)
            order = torch.randperm(60, generator=torch.Generator().manual_seed(split))
            model = nn.Linear(6, 2)
            optimizer = torch.optim.SGD(model.parameters(), 0.0)
            for step in range(8):
                part = order[:40][step % 4 * 10 :][:10]
                functional.cross_entropy(model(x[part]), (x[part, 0] > 0).long()).backward()
                optimizer.step()
                optimizer.zero_grad()
                with torch.no_grad():
                    model.eval()
                    functional.cross_entropy(model(x[order[40:]]), (x[order[40:], 0] > 0).long())
                    model.train()

        return history_of(train)

    together = replace(rank(0, 0), ranks={1: rank(1, seed)})
    assert {one.word for row in PARALLEL for one in row.find(together)} == found


def test_ranks_have_files_of_their_own(tmp_path: Any) -> None:
    path = str(tmp_path / "watch.jsonl")
    assert rank_path(path, 0) == path
    for rank in range(2):
        torch.manual_seed(0)
        with watched(path=rank_path(path, rank)):
            model = nn.Linear(3, 1)
            _steps(model, lambda model=model: model(torch.ones(2, 3)).sum(), times=3)
    following = RecordFileReader(tmp_path / "watch.jsonl")
    following.read_all()
    assert following.history().ranks[1].count == 3
    assert read_records(tmp_path / "watch.jsonl").ranks.keys() == {1}


@pytest.mark.parametrize(
    ("clears", "in_place"), [(True, False), (False, False), (False, True), (True, True)]
)
def test_gradients_that_the_program_sets_itself_are_not_lost(clears: bool, in_place: bool) -> None:
    def train() -> None:
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(12):
            sums = [torch.zeros_like(one) for one in model.parameters()]
            for _ in range(3):  # gradients of each part are clipped, as for differential privacy
                model.zero_grad()
                functional.cross_entropy(model(torch.randn(8, 4)), torch.arange(8) % 3).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                for total, one in zip(sums, model.parameters(), strict=True):
                    assert one.grad is not None
                    total += one.grad / 3
            if clears:
                optimizer.zero_grad(set_to_none=False)
            for total, one in zip(sums, model.parameters(), strict=True):
                if in_place and one.grad is not None:
                    one.grad.copy_(total)
                else:
                    one.grad = total
            optimizer.step()

    assert words(train) == set()


@pytest.mark.parametrize("cut", ["item", "other model", None])
def test_optimizers_whose_parameters_the_loss_does_not_depend_on(cut: str | None) -> None:
    def train() -> None:
        scale = torch.tensor(2.0, requires_grad=True)
        model, other = nn.Linear(4, 1), nn.Linear(4, 1)
        of_model = torch.optim.SGD((other if cut == "other model" else model).parameters(), 0.1)
        of_scale = torch.optim.SGD([scale], 0.1)
        for _ in range(8):
            factor = scale.item() if cut == "item" else scale
            of_model.zero_grad()
            of_scale.zero_grad()
            (factor * model(torch.randn(8, 4)) - 1).square().mean().backward()
            of_model.step()
            of_scale.step()

    found = violations(history_of(train))
    assert [one.word for one in found] == (["parameters_frozen"] if cut else [])
    if found:
        assert found[0].place is not None
        # The only cut is the cause; a program reads it here whether it runs or not.
        assert "scale.item()" in found[0].place.text


@pytest.mark.parametrize("held", [True, False])
def test_a_network_that_gets_gradients_and_belongs_to_no_optimizer(held: bool) -> None:
    def train() -> None:
        generator, critic = (
            nn.Linear(4, 8),
            nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)),
        )
        of_critic = torch.optim.SGD(critic.parameters(), 0.01)
        of_generator = torch.optim.SGD((generator if held else critic).parameters(), 0.01)
        for _ in range(12):
            fake = generator(torch.randn(16, 4))
            of_critic.zero_grad()
            (critic(fake.detach()).mean() - critic(torch.randn(16, 8)).mean()).backward()
            of_critic.step()
            of_generator.zero_grad()
            (-critic(fake).mean()).backward()
            of_generator.step()

    found = curves("parameters_frozen", history_of(train))
    assert [one.text.split()[0] for one in found] == ([] if held else ["weight"])


def test_boxes_of_whole_numbers_are_no_class_indices() -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(12):
            optimizer.zero_grad()
            boxes = torch.randint(0, 24, (16, 4)).float()
            functional.smooth_l1_loss(model(torch.randn(16, 4)), boxes).backward()
            optimizer.step()

    assert not any("class indices" in one.text for one in curves("loss_wrong", history_of(train)))


def _classified(output: Callable[[torch.Tensor], torch.Tensor], units: int = 1) -> Training:
    def train() -> None:
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, units))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(8):
            optimizer.zero_grad()
            y = (torch.rand(8, 1) > 0.5).float()
            functional.binary_cross_entropy(output(model(torch.randn(8, 4)))[:, :1], y).backward()
            optimizer.step()

    return train


def test_softmax_over_a_single_value() -> None:
    assert words(_classified(lambda x: functional.softmax(x, dim=1))) == {"last_activation_wrong"}
    assert words(_classified(lambda x: functional.softmax(x, dim=1), 2)) == set()


@pytest.mark.parametrize("own", [True, False])
def test_targets_that_a_mask_excludes(own: bool) -> None:
    def train() -> None:
        model = nn.Linear(4, 8)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        diagonal = torch.eye(16, dtype=torch.bool)
        for _ in range(8):
            optimizer.zero_grad()
            z = functional.normalize(model(torch.randn(16, 4)), dim=1)
            similar = (z @ z.T).masked_fill(diagonal, -1e9)
            target = torch.arange(16)
            functional.cross_entropy(similar, target if own else target.roll(8)).backward()
            optimizer.step()

    assert words(train) == ({"labels_wrong"} if own else set())


def _trained(tmp_path: Any, *lines: str, times: int = 12) -> set[str]:
    return {one.word for one in violations(_program(tmp_path, *lines, times=times))}


def _program(tmp_path: Any, *lines: str, times: int = 12) -> TrainingHistory:
    """The history of a program with a loop of these lines; its source is read for the lines and signs."""
    begin = (
        "import torch", "from torch import nn", "from torch.nn import functional as F",
        "model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))", "head = nn.Linear(4, 1)",
        "optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], 1e-3)", f"for _ in range({times}):",
        "    x = data[torch.randint(64, (16,))]",
    )  # fmt: skip
    end = ("optimizer.zero_grad()", "loss.backward()", "optimizer.step()")
    program = tmp_path / "train.py"
    program.write_text("\n".join((*begin, *(f"    {one}" for one in (*lines, *end)), "")))
    data = torch.randn(64, 4)
    code = compile(program.read_text(), str(program), "exec")
    return history_of(lambda: exec(code, {"data": data}))


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("score = torch.distributions.Normal(model(x), 1).log_prob(x).mean()", "loss = score"), {"loss_wrong"}),
        (("score = torch.distributions.Normal(model(x), 1).log_prob(x).mean()", "loss = -score"), set()),
        (("score = torch.distributions.Normal(model(x), 1).log_prob(x).mean()", "loss = 1 - score"), set()),
        (("reward = x.sum(1)", "loss = (model(x).log_softmax(1)[:, 0] * reward).mean()"), set()),
        (("advantage, log_prob = x[:, 0], model(x).log_softmax(1)[:, 0]", "loss = (log_prob * advantage).mean()"), {"loss_wrong"}),
        (("advantage, log_prob = x[:, 0], model(x).log_softmax(1)[:, 0]", "loss = (-log_prob * advantage).mean()"), set()),
        (("iou = model(x).sigmoid().mean()", "loss = iou"), {"loss_wrong"}),
        (("iou = model(x).sigmoid().mean()", "loss = 1 - iou"), set()),
    ],
)  # fmt: skip
def test_the_sign_of_what_is_minimized(
    lines: tuple[str, ...], found: set[str], tmp_path: Any
) -> None:
    assert _trained(tmp_path, *lines) == found


def test_maximize_is_right_for_what_should_grow(tmp_path: Any) -> None:
    lines = (
        "optimizer = optimizer if _ else torch.optim.SGD(model.parameters(), 1e-3, maximize=True)",
        "likelihood = torch.distributions.Normal(model(x), 1).log_prob(x).mean()",
        "loss = likelihood",
    )
    history = _program(tmp_path, *lines)
    assert violations(history) == []
    assert curves("optimizer_wrong", history) == []


class _LabelsItself(nn.Module):
    """Takes its labels as models of Transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 9)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(self.words(input_ids).flatten(0, 1), labels.flatten())


def test_labels_that_a_model_is_called_with_are_no_input() -> None:
    def train() -> None:
        model = _LabelsItself()

        def loss() -> torch.Tensor:
            tags = torch.randint(9, (8, 6))
            return model(input_ids=torch.randint(9, (8, 6)), labels=tags)

        _steps(model, loss)

    assert words(train) == set()


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("noisy = x + torch.randn_like(x)", "loss = F.mse_loss(model(noisy), noisy)"), {"labels_wrong"}),
        (("noisy = x.add_(torch.randn_like(x))", "loss = F.mse_loss(model(noisy), x)"), {"labels_wrong"}),
        (("noisy = x + torch.randn_like(x)", "loss = F.mse_loss(model(noisy), x)"), set()),
        (("loss = F.mse_loss(model(x), x)",), set()),
    ],
)  # fmt: skip
def test_a_denoiser_whose_target_is_its_input(
    lines: tuple[str, ...], found: set[str], tmp_path: Any
) -> None:
    assert _trained(tmp_path, *lines) == found


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("head(model(x))", {"loss_wrong"}),
        ("head(model(x)).squeeze(1)", set()),
        ("head(model(x)).T", set()),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_a_loss_of_all_pairs(output: str, found: set[str], tmp_path: Any) -> None:
    assert _trained(tmp_path, f"loss = F.mse_loss({output}, x.sum(1))") == found


@pytest.mark.parametrize(("chance", "found"), [(1.0, {"labels_wrong"}), (0.5, set())])
def test_one_answer_for_all_examples(chance: float, found: set[str], tmp_path: Any) -> None:
    line = f"loss = F.binary_cross_entropy_with_logits(head(model(x)), (torch.rand(16, 1) < {chance}).float())"
    assert _trained(tmp_path, line, times=14) == found


@pytest.mark.parametrize(("blank", "found"), [(0, {"loss_wrong"}), (5, set())])
def test_labels_that_are_the_blank(blank: int, found: set[str], tmp_path: Any) -> None:
    lines = (
        "scores = torch.cat([model(x), head(model(x)), head(model(x))], 1).log_softmax(1).expand(10, 16, 6)",
        "labels = torch.randint(0, 4, (16, 3))",
        "lengths = torch.full((16,), 3)",
        f"loss = F.ctc_loss(scores, labels, torch.full((16,), 10), lengths, blank={blank})",
    )
    assert _trained(tmp_path, *lines) == found


@pytest.mark.parametrize(
    ("weights", "found"), [("1, 4", {"sample_weights_wrong"}), ("4, 1", set())]
)
def test_weights_that_follow_the_frequencies(weights: str, found: set[str], tmp_path: Any) -> None:
    lines = (
        "labels = (torch.rand(16) < 0.8).long()",
        f"loss = F.cross_entropy(model(x)[:, :2], labels, weight=torch.tensor([{weights}], dtype=torch.float))",
    )
    assert _trained(tmp_path, *lines) == found


@pytest.mark.parametrize(("period", "found"), [(8, {"schedule_wrong"}), (60, set()), (30, set())])
def test_a_cosine_that_rises_again_in_a_loop_without_epochs(
    period: int, found: set[str], tmp_path: Any
) -> None:
    lines = (
        f"schedule = schedule if _ else torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, {period})",
        "schedule.step() if _ else None",
        "loss = F.mse_loss(model(x), x.flip(1))",
    )
    assert _trained(tmp_path, *lines, times=60) == found


def _attend(causal: bool, fused: bool, excluded: torch.Tensor | None = None) -> Callable[..., Any]:
    def attend(parts: Any) -> Any:
        if fused:
            mask = None if excluded is None else ~excluded[:, None]
            return functional.scaled_dot_product_attention(*parts, attn_mask=mask, is_causal=causal)
        scores = parts[0] @ parts[1].transpose(1, 2)
        ahead = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(ahead, float("-inf")) if causal else scores
        scores = (
            scores if excluded is None else scores.masked_fill(excluded[:, None], float("-inf"))
        )
        return scores.softmax(-1) @ parts[2]

    return attend


class _Attending(nn.Module):
    def __init__(self, attend: Callable[..., Any]) -> None:
        super().__init__()
        self.words, self.parts, self.head = nn.Embedding(9, 8), nn.Linear(8, 24), nn.Linear(8, 9)
        self.attend = attend

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.attend(self.parts(self.words(ids)).chunk(3, -1)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_a_model_that_predicts_the_next_token_must_not_attend_to_it(
    causal: bool, fused: bool
) -> None:
    def train() -> None:
        model = _Attending(_attend(causal, fused))

        def loss() -> torch.Tensor:
            ids = torch.randint(9, (8, 12))
            return functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

        _steps(model, loss)

    assert words(train) == (set() if causal else {"data_leaked"})


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("inverted", [True, False])
def test_an_attention_mask_that_leaves_only_padding(inverted: bool, fused: bool) -> None:
    def train() -> None:
        model = _Attending(_attend(False, fused))

        def loss() -> torch.Tensor:
            lengths = torch.tensor([3, 5, 6, 8, 7, 4])
            padded = torch.arange(9)[None] >= lengths[:, None]
            ids = torch.randint(1, 9, (6, 9)).masked_fill(padded, 0)
            model.attend = _attend(False, fused, ~padded if inverted else padded)
            tags = torch.where(padded, -100, (ids + 1) % 9)
            return functional.cross_entropy(model(ids).flatten(0, 1), tags.flatten())

        _steps(model, loss)

    assert words(train) == ({"input_invalid"} if inverted else set())


@pytest.mark.parametrize(
    ("reward", "factor", "found"),
    [
        ("first", "gamma * value", {"loss_wrong"}),
        ("first", "gamma * value.detach()", set()),
        ("reward", "0.98 * value", {"loss_wrong"}),
        ("reward", "0.98 * value.detach()", set()),
        ("first", "0.98 * value", set()),
    ],
)
def test_a_target_of_the_next_value_that_gradients_pass_through(
    reward: str, factor: str, found: set[str], tmp_path: Any
) -> None:
    lines = ("gamma, value = 0.9, head(model(x))", f"{reward} = x[:, :1]", f"target = {reward} + {factor}",
             "loss = F.mse_loss(head(model(x)), target)")  # fmt: skip
    assert _trained(tmp_path, *lines) == found


@pytest.mark.parametrize("function", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
@pytest.mark.parametrize(
    ("arguments", "found"), [("known, guess", {"loss_wrong"}), ("guess, known", set())]
)
def test_a_loss_that_is_given_the_labels_first(
    function: str, arguments: str, found: set[str], tmp_path: Any
) -> None:
    lines = ("known, guess = (x[:, :1] > 0) * 0.8 + 0.1, head(model(x)).sigmoid()", f"loss = F.{function}({arguments})")  # fmt: skip
    facts = [one for one in violations(_program(tmp_path, *lines)) if "only through" in one.text]
    assert {one.word for one in facts} == found
    assert all(one.place is not None and function in one.place.text for one in facts)
    assert all(one.kind in PROOFS for one in facts)


def test_a_relation_that_is_violated_from_some_iteration_on_is_found_with_its_onset(
    tmp_path: Any,
) -> None:
    lines = ("part = 8 if _ > 20 else 0", "x = torch.cat([x * 0, x])[16 - part : 32 - part]",
             "loss = model(x).square().mean()")  # fmt: skip
    found = violations(_program(tmp_path, *lines, times=40))
    assert [(one.word, one.since) for one in found] == [("input_invalid", 21)]
    assert found[0].text.startswith("From iteration 21 on: ")


@pytest.mark.parametrize(
    ("window", "found"), [("x", {"data_leaked"}), ("x * torch.tensor([1, 1, 1, 0])", set())]
)
def test_inputs_that_contain_their_target(window: str, found: set[str], tmp_path: Any) -> None:
    assert _trained(tmp_path, f"loss = F.mse_loss(head(model({window}))[:, 0], x[:, 3])") == found


def _two_phases(*, held: bool, zero: bool = False) -> Training:
    """A model that gets another layer, or whose frozen layer is thawed, after its first optimizer was made."""

    def train() -> None:
        model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
        model[0].requires_grad_(False)
        optimizer = torch.optim.SGD(model[1].parameters(), 0.1)
        for step in range(24):
            if step == 8:
                model[0].requires_grad_(True)
                if held:
                    optimizer.add_param_group({"params": list(model[0].parameters())})
            if step == 8 and zero:
                for layer in model:
                    nn.init.zeros_(layer.weight)
            loss = functional.cross_entropy(model(torch.randn(8, 4)), torch.arange(8) % 3)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train


def test_what_is_thawed_belongs_to_an_optimizer() -> None:
    assert "parameters_frozen" in words(_two_phases(held=False))
    assert words(_two_phases(held=True)) == set()


def test_a_layer_that_replaces_another_is_the_layer_of_the_model() -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(16):
            if step == 4:
                model[1] = nn.Linear(8, 5)
            loss = functional.cross_entropy(model(torch.randn(8, 4)), torch.arange(8) % 3)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    history = history_of(train)
    found = {one.name: (one.shape, one.held) for one in history.parameters}
    assert found["1.weight"] == ((5, 8), False)
    assert found["0.weight"] == ((8, 4), True)


def test_two_factors_that_begin_at_zero_stay_there() -> None:
    class Added(nn.Module):
        def __init__(self, *, random: bool) -> None:
            super().__init__()
            self.base = nn.Linear(4, 3)
            self.low = nn.Parameter(torch.randn(4, 2) * random)
            self.high = nn.Parameter(torch.zeros(2, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.base(x) + x @ self.low @ self.high

    def train(random: bool) -> None:
        model = Added(random=random)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(8):
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(8, 4)), torch.arange(8) % 3).backward()
            optimizer.step()

    assert words(lambda: train(random=False)) == {"weight_init_wrong"}
    assert words(lambda: train(random=True)) == set()


@pytest.mark.parametrize(("weight", "word"), [(0.07, {"sample_weights_wrong"}), (15.0, set())])
def test_the_rare_answer_has_the_large_weight(weight: float, word: set[str]) -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weight))
        for _ in range(12):
            labels = (torch.arange(16) == 3).float()
            optimizer.zero_grad()
            criterion(model(torch.randn(16, 4)).squeeze(1), labels).backward()
            optimizer.step()

    assert words(train) == word


@pytest.mark.parametrize(("steps", "word"), [(5000, {"schedule_wrong"}), (5, set())])
def test_a_warm_up_ends_before_the_training(steps: int, word: set[str]) -> None:
    def train() -> None:
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / steps))
        for _ in range(60):
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(8, 4)), torch.arange(8) % 3).backward()
            optimizer.step()
            schedule.step()

    assert words(train) == word


@pytest.mark.parametrize("inverted", [True, False])
def test_words_that_are_pooled_without_the_words(inverted: bool) -> None:
    class Pooling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.out = nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 3)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            hidden = self.words(ids)
            scores = hidden.sum(-1).masked_fill((ids != 0) if inverted else (ids == 0), -1e9)
            return self.out((torch.softmax(scores, dim=1)[..., None] * hidden).sum(1))

    def train() -> None:
        model = Pooling()

        def loss() -> torch.Tensor:
            padded = torch.arange(9)[None] >= torch.tensor([3, 5, 6, 8, 7, 4])[:, None]
            ids = torch.randint(1, 9, (6, 9)).masked_fill(padded, 0)
            return functional.cross_entropy(model(ids), ids[:, 0] % 3)

        _steps(model, loss)

    assert words(train) == ({"input_invalid"} if inverted else set())


@pytest.mark.parametrize("inverse", [True, False])
def test_a_sampler_that_draws_the_frequent_class_still_more_often(inverse: bool) -> None:
    def train() -> None:
        labels = (torch.arange(200) % 20 == 0).long()
        shares = torch.bincount(labels) / 200
        weights = (1 / shares if inverse else shares)[labels]
        data = TensorDataset(torch.randn(200, 4), labels)
        loader = DataLoader(data, 20, sampler=WeightedRandomSampler(weights.double().tolist(), 200))
        batches, model = iter(loader), nn.Linear(4, 2)

        def loss() -> torch.Tensor:
            x, y = next(batches)
            return functional.cross_entropy(model(x), y)

        _steps(model, loss, times=8)

    assert words(train) == (set() if inverse else {"sample_weights_wrong"})


@pytest.mark.parametrize("codes", [1, 30])
def test_a_table_of_symbols_whose_inputs_are_all_the_same(codes: int) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Embedding(30, 4), nn.Linear(4, 1))
        _steps(
            model,
            lambda: functional.mse_loss(model(torch.randint(codes, (16,))), torch.randn(16, 1)),
        )

    assert words(train) == ({"input_invalid"} if codes == 1 else set())


@pytest.mark.parametrize("function", [torch.relu, torch.exp])
def test_a_variance_that_a_relu_returns(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def train() -> None:
        model = nn.Linear(4, 2)

        def loss() -> torch.Tensor:
            mean, raw = model(torch.randn(16, 4)).chunk(2, 1)
            return functional.gaussian_nll_loss(mean, torch.randn(16, 1), function(raw))

        _steps(model, loss)

    assert words(train) == ({"last_activation_wrong"} if function is torch.relu else set())


@pytest.mark.parametrize(("length", "found"), [(1000, {"schedule_wrong"}), (6, set())])
def test_a_warmup_that_outlasts_the_training(length: int, found: set[str]) -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, step / length)
        )
        for _ in range(14):
            functional.mse_loss(model(torch.randn(16, 4)), torch.randn(16, 1)).backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()

    assert words(train) == found


def test_a_warm_up_whose_end_was_not_observed() -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 60))
        for _ in range(100):
            functional.mse_loss(model(torch.randn(16, 4)), torch.randn(16, 1)).backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()

    history = history_of(train)
    seldom = (*(i for i in history.iterations if i.number < 40), history.iterations[-1])
    assert violations(replace(history, iterations=seldom)) == []


def test_weights_of_an_attention_that_are_no_numbers() -> None:
    softmax = {"function": "softmax", "dim": 2, "shape": [4, 6, 6], "place": ["t.py", 1, ""],
               "future": "nan", "padding": "nan", "padded": 0.4}  # fmt: skip
    records = [
        {"kind": "iteration", "iteration": n, "softmaxes": [softmax], "relations": {"lags": [0, 0, 1, 0]},
         "inputs": [{"name": "0.0", "shape": [4, 6], "dtype": "int64", "mean": 4.0, "std": 2.0}]}
        for n in range(8)
    ]  # fmt: skip
    assert violations(read_records(records)) == []


@pytest.mark.parametrize(
    ("seed", "found"),
    [("torch.manual_seed(7)", {"augmentation_wrong", "data_duplicated"}), ("", set())],
)
def test_the_same_batch_is_drawn_again(seed: str, found: set[str], tmp_path: Any) -> None:
    lines = (
        seed or "pass",
        "x = torch.randn(16, 4)",
        "loss = F.mse_loss(head(model(x)), x[:, :1] * 2)",
    )
    assert _trained(tmp_path, *lines) == found


@pytest.mark.parametrize(("decay", "found"), [(0.99999, {"copy_not_updated"}), (0.9, set())])
def test_an_average_that_outlasts_the_training(
    decay: float, found: set[str], tmp_path: Any
) -> None:
    lines = ("import copy", "average = globals().get('average') or copy.deepcopy(model)",
             "for a, b in zip(average.parameters(), model.parameters()):",
             f"    a.data.lerp_(b.data, {1 - decay!r})", "loss = F.mse_loss(head(model(x)), x.sum(1, keepdim=True))")  # fmt: skip
    assert _trained(tmp_path, *lines, times=60) == found


@pytest.mark.parametrize(("last", "found"), [(False, {"accumulation_wrong"}), (True, set())])
def test_the_last_window_of_an_epoch_is_cleared(last: bool, found: set[str]) -> None:
    def train() -> None:
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(4):
            optimizer.zero_grad()
            for number in range(11):
                loss = functional.cross_entropy(model(torch.randn(8, 4)), torch.arange(8) % 3)
                (loss / 4).backward()
                if number % 4 == 3 or (last and number == 10):
                    optimizer.step()
                    optimizer.zero_grad()

    assert words(train) == found


def test_a_copy_that_only_evaluations_call_stays() -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        average = copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        x = torch.randn(64, 4)
        for step in range(48):
            loss = functional.mse_loss(model(x), x.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 12 == 11:
                with torch.no_grad():
                    functional.mse_loss(average(x), x.sum(1, keepdim=True)).item()

    torch.manual_seed(0)
    # As on a slow machine: its time for inspections is spent when the copy is first called.
    early = Schedule(share=0.0, free_s=0.0, always=lambda number: 4 < number < 11)
    with watched(schedule=early) as heard:
        train()
    assert "copy_not_updated" in {one.word for one in violations(read_records(heard))}


@pytest.mark.parametrize(
    ("width", "found"), [(16, {"label_range_wrong"}), (9, set())], ids=["pairs", "memory bank"]
)
def test_one_label_for_all_pairs_of_a_batch(width: int, found: set[str]) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(24):
            x = torch.randn(16, 6)
            others = torch.randn(width, 8)
            loss = functional.cross_entropy(model(x) @ others.T, torch.zeros(16).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    assert words(train) & {"label_range_wrong"} == found


def test_a_schedule_whose_milestones_have_passed() -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [8, 12])
        for _ in range(80):
            functional.mse_loss(model(torch.randn(16, 4)), torch.randn(16, 1)).backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()

    assert words(train) == {"schedule_wrong"}


@pytest.mark.parametrize(("every", "found"), [(0, {"step_missing"}), (5, set())])
def test_one_of_two_optimizers_never_steps(every: int, found: set[str]) -> None:
    def train() -> None:
        encoder, decoder = nn.Linear(4, 8), nn.Linear(8, 4)
        first, second = (torch.optim.Adam(of.parameters(), 1e-3) for of in (encoder, decoder))
        for number in range(120):
            x = torch.randn(16, 4)
            first.zero_grad()
            second.zero_grad()
            functional.mse_loss(decoder(encoder(x)), x).backward()
            second.step()
            if every and number % every == 0:
                first.step()

    assert words(train) & {"step_missing"} == found


@pytest.mark.parametrize(("passes", "found"), [(False, {"parameters_frozen"}), (True, set())])
def test_weights_that_are_rounded_get_a_gradient(passes: bool, found: set[str]) -> None:
    class Rounded(nn.Linear):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rounded = (self.weight * 4).round() / 4
            weight = self.weight + (rounded - self.weight).detach() if passes else rounded
            return functional.linear(x, weight, self.bias)

    def train() -> None:
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), Rounded(8, 3))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(12):
            functional.cross_entropy(model(torch.randn(16, 4)), torch.arange(16) % 3).backward()
            optimizer.step()
            optimizer.zero_grad()

    assert words(train) == found


@pytest.mark.parametrize(("apart", "found"), [(True, {"labels_wrong"}), (False, set())])
def test_two_inputs_that_belong_together(apart: bool, found: set[str]) -> None:
    class Towers(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.image, self.text = nn.Linear(6, 8), nn.Linear(5, 8)

        def forward(self, image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
            return self.image(image) @ self.text(text).T

    def train() -> None:
        images, texts = torch.randn(32, 6), torch.randn(32, 5)
        model = Towers()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(60):
            order = torch.randperm(32)
            other = torch.randperm(32) if apart else order
            for left, right in zip(order.split(16), other.split(16), strict=True):
                scores = model(images[left], texts[right])
                functional.cross_entropy(scores, torch.arange(16)).backward()
                optimizer.step()
                optimizer.zero_grad()

    assert words(train) == found


@pytest.mark.parametrize("alias", [True, False])
def test_a_reference_that_is_the_model_itself(alias: bool) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        reference = model if alias else copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        for _ in range(16):
            chosen, rejected = torch.randn(2, 16, 4)
            with torch.no_grad():
                old = reference(chosen) - reference(rejected)
            loss = -functional.logsigmoid(model(chosen) - model(rejected) - old).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    found = [one.text for one in catalogue()["copy_not_updated"](history_of(train))]
    assert any("with itself" in text for text in found) is alias


@pytest.mark.parametrize(("period", "found"), [(20, {"schedule_wrong"}), (1, set())])
def test_a_warm_up_from_zero_is_stepped(period: int, found: set[str]) -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 8))
        for number in range(60):
            functional.mse_loss(model(torch.randn(16, 4)), torch.randn(16, 1)).backward()
            optimizer.step()
            optimizer.zero_grad()
            if number % period == period - 1:
                schedule.step()

    assert words(train) & {"schedule_wrong"} == found


@pytest.mark.parametrize("decoupled", [False, True])
def test_a_weight_decay_that_is_larger_than_the_gradient(decoupled: bool) -> None:
    def train() -> None:
        kind = torch.optim.AdamW if decoupled else torch.optim.Adam
        model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        optimizer = kind(model.parameters(), lr=5e-3, weight_decay=1.0)
        x = torch.randn(64, 4)
        for _ in range(200):
            functional.cross_entropy(model(x), x[:, :3].argmax(1)).backward()
            optimizer.step()
            optimizer.zero_grad()

    found = [
        one
        for one in catalogue()["regularization_too_strong"](history_of(train))
        if one.kind in PROOFS
    ]
    assert [one.word for one in found] == ([] if decoupled else ["regularization_too_strong"])


@pytest.mark.parametrize("inverted", [True, False])
def test_a_mask_of_an_encoder_next_to_a_decoder(inverted: bool) -> None:
    def train() -> None:
        words, core = nn.Embedding(9, 8), nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True)
        model = nn.ModuleList([words, core, nn.Linear(8, 9)])

        def answer(ids: torch.Tensor, begun: torch.Tensor) -> torch.Tensor:
            padding = (ids != 0) if inverted else ids == 0
            ahead = torch.ones(begun.shape[1], begun.shape[1], dtype=torch.bool).triu(1)
            masks = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
            return model[2](core(words(ids), words(begun), tgt_mask=ahead, **masks))  # type: ignore[no-any-return]

        model.forward = answer  # type: ignore[method-assign]

        def loss() -> torch.Tensor:
            lengths = torch.tensor([3, 5, 6, 8, 7, 4])
            ids = torch.randint(1, 9, (6, 9))
            ids = ids.masked_fill(torch.arange(9)[None] >= lengths[:, None], 0)
            tags = torch.randint(1, 9, (6, 9))
            return functional.cross_entropy(model(ids, tags).flatten(0, 1), tags.flatten())

        _steps(model, loss)

    assert words(train) & {"input_invalid"} == ({"input_invalid"} if inverted else set())


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (lambda o, rate: o.param_groups[0].update(learning_rate=rate), {"schedule_wrong"}),
        (lambda o, rate: setattr(o, "lr", rate), {"schedule_wrong"}),
        (lambda o, rate: setattr(o, "weight_decay", 0.01), {"schedule_wrong"}),
        (lambda o, rate: o.param_groups[0].update(lr=rate), set()),
        (lambda o, rate: o.param_groups[0].update(lr=rate, lr_scale=rate), set()),
        (lambda o, rate: o.param_groups[0].update(lr_scale=0.5, name="head", seen=rate), set()),
    ],
)
def test_settings_that_the_optimizer_does_not_read(
    write: Callable[[Any, float], None], found: set[str]
) -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.Adam(model.parameters(), 1e-4)
        for number in range(8):
            write(optimizer, 1e-4 * (number + 1))
            functional.mse_loss(model(torch.randn(16, 4)), torch.randn(16, 1)).backward()
            optimizer.step()
            optimizer.zero_grad()

    assert words(train) & {"schedule_wrong"} == found


@pytest.mark.parametrize(("length", "found"), [(20, {"schedule_wrong"}), (60, set()), (45, set())])
def test_a_schedule_that_ends_long_before_the_training(length: int, found: set[str]) -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: max(0.0, 1 - s / length))
        for _ in range(60):
            functional.mse_loss(model(torch.randn(16, 4)), torch.randn(16, 1)).backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()

    assert words(train) & {"schedule_wrong"} == found


@pytest.mark.parametrize("buffers", [True, False])
def test_an_average_without_the_statistics_of_its_normalizations(buffers: bool) -> None:
    def train() -> None:
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
        average = copy.deepcopy(model).requires_grad_(False)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for number in range(24):
            model.train()
            x = 3 + 2 * torch.randn(16, 4)
            functional.mse_loss(model(x), x[:, :1]).backward()
            optimizer.step()
            optimizer.zero_grad()
            source = model.state_dict()
            followed = average.state_dict() if buffers else dict(average.named_parameters())
            with torch.no_grad():
                for name, value in followed.items():
                    if value.is_floating_point():
                        value.mul_(0.8).add_(source[name], alpha=0.2)
            if number % 4 == 3:
                average.eval()
                with torch.no_grad():
                    functional.mse_loss(average(x), x[:, :1]).item()

    assert words(train) & {"copy_not_updated"} == (set() if buffers else {"copy_not_updated"})
