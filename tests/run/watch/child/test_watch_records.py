"""What is told of a training."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from tests.run.watch.child.conftest import Heard, watched


def _train(model: nn.Module, count: int = 3, optimizer: Any = None) -> None:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(count):
        optimizer.zero_grad()
        functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
        optimizer.step()


def _losses(heard: Heard) -> list[float]:
    return [value for one in heard.of("losses") for _, _, value in one["losses"]]


def test_weights_are_told_before_the_first_step() -> None:
    with watched() as heard:
        model = nn.Linear(4, 2)
        nn.init.constant_(model.weight, 0.25)
        _train(model)
    assert heard.of("model")[0]["parameters"][0]["mean"] == 0.25
    assert len(heard.of("model")) == 1


def test_the_scale_of_gradients_and_steps_left_out() -> None:
    with watched() as heard:
        model, optimizer = nn.Linear(4, 2), None
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for factor in (1.0, float("inf"), 1.0):
            optimizer.zero_grad()
            loss = model(torch.ones(2, 4)).square().mean() * factor
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert [one["scale"] for one in heard.of("scaler")] == [1024.0, 512.0, 512.0]
    assert [one.get("skipped_steps", 0) for one in heard.of("iteration")] == [0, 1, 0]
    assert _losses(heard)[0] < 100


def test_clipping() -> None:
    with watched() as heard:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(2):
            model(torch.ones(2, 4)).sum().backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
            nn.utils.clip_grad_value_(model.parameters(), 0.1)
            optimizer.step()
    assert [(one["function"], one["limit"]) for one in heard.of("clip")] == [
        ("clip_grad_norm_", 0.5),
        ("clip_grad_value_", 0.1),
    ]
    assert "max_norm=0.5" in heard.of("clip")[0]["place"][2]
    assert heard.of("iteration")[0]["clippings"][0]["norm"] > 1


def test_epochs_and_evaluations_by_loader() -> None:
    data = TensorDataset(torch.randn(32, 4), torch.randint(2, (32,)))
    with watched() as heard:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        train, validation = DataLoader(data, 8, shuffle=True), DataLoader(data, 16)

        def evaluate(loader: Any) -> float:
            model.eval()
            right = 0
            with torch.no_grad():
                for x, y in loader:
                    right += (model(x).argmax(1) == y).sum().item()
            model.train()
            return right / 32

        for _ in range(2):
            for x, y in train:
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()
            told = evaluate(train), evaluate(validation)
    epochs = [(one["loader"], one["iteration"], one["batches"]) for one in heard.of("epoch")]
    assert epochs == [(0, 0, 4), (0, 4, 4), (1, 4, 2), (0, 4, 4), (0, 8, 4), (1, 8, 2)]
    found = heard.of("evaluation")
    assert [(one["loader"], one["iteration"], one["calls"]) for one in found] == [
        (0, 4, 4), (1, 4, 2), (0, 8, 4), (1, 8, 2),
    ]  # fmt: skip
    assert abs(found[-1]["agreement"] - told[1]) < 1e-6
    assert found[-1]["scalars"][0]["name"] == "right"


def test_evaluations_of_several_data_by_one_function() -> None:
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    with watched() as heard:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)

        @torch.no_grad()
        def error(x: torch.Tensor, y: torch.Tensor) -> float:
            return ((model(x) - y) ** 2).mean().item()

        for _ in range(3):
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
            first = error(x, y)
            second = error(x[:4], y[:4])
    found = heard.of("evaluation")
    assert [one["inputs"][0]["shape"][0] for one in found] == [32, 4] * 3
    assert [one["output"]["shape"] for one in found[:2]] == [[32, 1], [4, 1]]
    means = [one["scalars"][0]["mean"] for one in found[-2:]]
    assert max(abs(a - b) for a, b in zip(means, (first, second), strict=True)) < 1e-5
    iteration = heard.of("iteration")[0]
    assert iteration["output"]["shape"] == iteration["target"]["shape"] == [32, 1]


def test_a_decoder_called_at_two_lines_is_one_evaluation() -> None:
    with watched() as heard:
        cell = nn.GRUCell(2, 2)
        optimizer = torch.optim.SGD(cell.parameters(), 0.01)
        for _ in range(3):
            cell(torch.randn(4, 2)).sum().backward()
            optimizer.step()
            with torch.no_grad():
                for _ in range(10):
                    hidden = cell(torch.randn(4, 2))
                    for _ in range(3):
                        hidden = cell(torch.randn(4, 2), hidden)
                    hidden.sum().item()
    assert len(heard.of("evaluation")) <= 6
    assert max(one["calls"] for one in heard.of("evaluation")) >= 30


def test_a_target_network_and_a_frozen_one_are_no_evaluation() -> None:
    with watched() as heard:
        model, target, frozen = nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(4, 4)
        frozen.requires_grad_(False).eval()
        target.eval()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for number in range(4):
            x = frozen(torch.randn(8, 4)) if number else torch.randn(8, 4)
            out = model(x)
            with torch.no_grad():
                goal = target(x)
            functional.mse_loss(out, goal).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert len(heard.of("iteration")) == 4
    assert all("0/" in one["layers"] for one in heard.of("iteration"))


def test_dropout_as_a_function() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.dropout(self.layer(x), 0.9)

    with watched() as heard:
        model = Model()
        _train(model)
        with torch.no_grad():
            model.eval()(torch.randn(8, 4)).sum().item()
    for one in (heard.of("iteration")[0], heard.of("evaluation")[0]):
        told = one["layers"]["0/layer:dropout"]
        assert (told["rate"], told["drops"]) == (0.9, True)


def test_gradients_accumulate_over_many_passes() -> None:
    with watched() as heard:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for number in range(96):
            model(torch.randn(8, 4)).square().mean().backward()
            if number % 32 == 31:
                optimizer.step()
                optimizer.zero_grad()
    assert [sum(one["backwards"].values()) for one in heard.of("iteration")] == [32, 32, 32]
    assert all(one["stepped"] for one in heard.of("iteration"))


def test_steps_that_are_missing() -> None:
    with watched() as heard:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().mean().backward()
    assert [one["stepped"] for one in heard.of("iteration")] == [0] * 4
    assert len(_losses(heard)) == 5


def test_models_one_after_the_other() -> None:
    kept = []
    with watched() as heard:
        for _ in range(3):
            model = nn.Linear(4, 2)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            kept.append((model, optimizer))
            _train(model, 4, optimizer)
            model.eval()
            with torch.no_grad():
                (model(torch.randn(8, 4)).argmax(1) == torch.zeros(8).long()).sum().item()
    assert [one["model"] for one in heard.of("evaluation")] == ["0/", "1/", "2/"]
    assert 11 <= len(heard.of("iteration")) <= 12
