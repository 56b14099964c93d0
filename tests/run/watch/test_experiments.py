"""Experiments on the running model: what depends on what is found with its line, and correct trainings show nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from epochzero.run.watch.child.experiments import dependence, laboratory, tape
from epochzero.run.watch.child.experiments.tape import Recorder
from epochzero.run.watch.child.experiments.worlds import UnfitError
from epochzero.run.watch.faults._experiments import EXPERIMENTS
from epochzero.run.watch.faults.pairing import RELATIONS as PAIRINGS
from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.run.watch.model import TrainingFinding
from tests.run.watch.child.conftest import Heard, watched

Forward = Callable[..., Any]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
COUNT, LENGTH, WORDS = 6, 8, 12


class _Model(nn.Module):
    """Layers for sequences, which a function puts together."""

    def __init__(self, forward: Forward, **layers: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(layers)
        self._forward = forward

    def forward(self, *given: torch.Tensor) -> Any:
        return self._forward(self.parts, *given)


class _Heedless(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> Any:
        return self.head(x[:, -1])


def _trained(
    make: Callable[[], nn.Module],
    batch: Callable[[], tuple[Any, Any]],
    loss_of: Loss = functional.mse_loss,
    steps: int = laboratory.FIRST + 1,
    **settings: Any,
) -> Heard:
    torch.manual_seed(0)
    with watched() as heard:
        model = make()
        optimizer = torch.optim.SGD(model.parameters(), **({"lr": 0.01} | settings))
        for _ in range(steps):
            given, target = batch()
            loss: Any = loss_of(model(*given), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return heard


def _findings(heard: Heard) -> list[TrainingFinding]:
    history: TrainingHistory = read_records(heard)
    assert history.experiments
    assert not any(of["problem"] for of in history.experiments)
    return [finding for row in EXPERIMENTS for finding in row.find(history)]


def _found(*arguments: Any) -> list[tuple[str, str]]:
    """Kinds of faults, each with the text of its line."""
    return [(f.word, f.place.text if f.place else "") for f in _findings(_trained(*arguments))]


def _vectors() -> tuple[Any, Any]:
    x = torch.randn(COUNT, LENGTH, 4)
    return (x,), x[:, -1, :1].clone()


def _tokens() -> tuple[Any, Any]:
    x = torch.randint(1, WORDS, (COUNT, LENGTH + 1))
    return (x[:, :-1].clone(),), x[:, 1:].clone()


def _of_tokens(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(scores.flatten(0, 1), target.flatten())


def _recurrent(*, batch_first: bool) -> nn.Module:
    rnn = nn.LSTM(4, 5, batch_first=batch_first)
    head = nn.Sequential(nn.BatchNorm1d(5), nn.Dropout(0.2), nn.Linear(5, 1))
    return _Model(lambda of, x: of["head"](of["rnn"](x)[0][:, -1]), rnn=rnn, head=head)


def test_a_recurrent_layer_across_the_batch() -> None:
    found = _found(partial(_recurrent, batch_first=False), _vectors)
    assert found == [("input_invalid", "rnn = nn.LSTM(4, 5, batch_first=batch_first)")]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", ["gru", "attention"])
def test_examples_that_are_taken_for_positions(kind: str, first: bool) -> None:
    def make() -> nn.Module:
        layer: Any = (
            nn.GRU(4, 4, batch_first=first)
            if kind == "gru"
            else nn.TransformerEncoderLayer(4, 2, 8, batch_first=first)
        )

        def forward(of: nn.ModuleDict, x: torch.Tensor) -> Any:
            found = of["layer"](x)
            return of["head"]((found[0] if isinstance(found, tuple) else found)[:, -1])

        return _Model(forward, layer=layer, head=nn.Linear(4, 3))

    def batch() -> tuple[Any, Any]:
        return (torch.randn(16, 6, 4),), torch.arange(16) % 3

    found = dict(_found(make, batch, functional.cross_entropy))
    assert ("input_invalid" in found) is not first, found


def test_normalization_and_dropout_are_no_mixing() -> None:
    assert _found(partial(_recurrent, batch_first=True), _vectors) == []


def test_a_softmax_over_the_batch() -> None:
    def forward(of: Any, x: torch.Tensor) -> Any:
        weights = torch.softmax(of["score"](x), dim=0)
        return of["head"]((weights * x).sum(1))

    make = partial(_Model, forward, score=nn.Linear(4, 1), head=nn.Linear(4, 1))
    line = 'weights = torch.softmax(of["score"](x), dim=0)'
    assert _found(make, _vectors) == [("activation_wrong", line)]


def test_a_view_instead_of_a_transpose() -> None:
    def forward(of: Any, x: torch.Tensor) -> Any:
        y = x.view(4, COUNT, LENGTH).permute(1, 0, 2)
        return of["head"](y.flatten(1))

    make = partial(_Model, forward, head=nn.Linear(4 * LENGTH, 1))
    assert _found(make, _vectors) == [
        ("input_invalid", "y = x.view(4, COUNT, LENGTH).permute(1, 0, 2)")
    ]


def test_a_column_against_a_row() -> None:
    def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output - target.flatten()).square().mean()

    make = partial(_Model, lambda of, x: of["head"](x[:, -1]), head=nn.Linear(4, 1))
    line = "return (output - target.flatten()).square().mean()"
    assert _found(make, _vectors, loss_of) == [("loss_wrong", line)]


def test_targets_of_other_examples() -> None:
    def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.l1_loss(output, target.roll(1, 0))

    make = partial(_Model, lambda of, x: of["head"](x[:, -1]), head=nn.Linear(4, 1))
    line = "return functional.l1_loss(output, target.roll(1, 0))"
    assert _found(make, _vectors, loss_of) == [("labels_wrong", line)]


def test_targets_without_influence() -> None:
    def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output - target * 0).square().mean()

    make = partial(_Model, lambda of, x: of["head"](x[:, -1]), head=nn.Linear(4, 1))
    assert ("loss_wrong", "return (output - target * 0).square().mean()") in _found(
        make, _vectors, loss_of
    )


def test_gradients_that_are_cut() -> None:
    def forward(of: Any, x: torch.Tensor) -> Any:
        hidden = of["first"](x[:, -1])
        hidden = torch.relu(hidden).detach()
        return of["head"](hidden)

    make = partial(_Model, forward, first=nn.Linear(4, 5), head=nn.Linear(5, 1))
    assert _found(make, _vectors) == [("parameters_frozen", "hidden = torch.relu(hidden).detach()")]


def test_an_input_without_influence() -> None:
    def batch() -> tuple[Any, Any]:
        (x,), y = _vectors()
        return (x, torch.randn(COUNT, 1)), y

    def forward(of: Any, x: torch.Tensor, time: torch.Tensor) -> Any:
        of["time"](time)
        return of["head"](x[:, -1])

    make = partial(_Model, forward, time=nn.Linear(1, 4), head=nn.Linear(4, 1))
    assert ("layer_unused", 'of["time"](time)') in _found(make, batch)


def test_a_mask_of_padding_has_influence() -> None:
    def batch() -> tuple[Any, Any]:
        (x,), y = _vectors()
        kept = torch.arange(LENGTH) < torch.randint(2, LENGTH, (COUNT, 1))
        return (x, kept.long()), y

    def forward(of: Any, x: torch.Tensor, mask: torch.Tensor) -> Any:
        scores = of["score"](x)[..., 0].masked_fill(mask == 0, -torch.inf)
        return of["head"]((scores.softmax(1)[..., None] * x).sum(1))

    make = partial(_Model, forward, score=nn.Linear(4, 1), head=nn.Linear(4, 1))
    assert _found(make, batch) == []


def test_an_input_that_is_never_read() -> None:
    def batch() -> tuple[Any, Any]:
        (x,), y = _vectors()
        return (x, torch.randn(COUNT, 1)), y

    assert _found(_Heedless, batch) == [("layer_unused", "return self.head(x[:, -1])")]


def test_a_large_constant_of_a_mask_hides_nothing() -> None:
    def forward(of: Any, x: torch.Tensor) -> Any:
        h = of["head"](x[:, -1])
        return torch.cat([h, torch.full_like(h, -1e9)], 1).logsumexp(1, keepdim=True)

    assert _found(partial(_Model, forward, head=nn.Linear(4, 1)), _vectors) == []


@pytest.mark.parametrize("causal", [True, False])
def test_a_language_model_that_looks_ahead(causal: bool) -> None:
    def forward(of: Any, x: torch.Tensor) -> Any:
        h = of["words"](x)[:, None]
        h = functional.scaled_dot_product_attention(h, h, h, is_causal=causal)
        return of["head"](h[:, 0])

    make = partial(_Model, forward, words=nn.Embedding(WORDS, 6), head=nn.Linear(6, WORDS))
    line = "h = functional.scaled_dot_product_attention(h, h, h, is_causal=causal)"
    assert _found(make, _tokens, _of_tokens) == ([] if causal else [("data_leaked", line)])


def _flipped(*, masks: bool) -> list[str]:
    """A segmentation that has learned for some steps from bright squares, half of which are flipped, with their masks or without."""
    torch.manual_seed(0)

    def batch() -> tuple[Any, Any]:
        image, mask = torch.zeros(12, 1, 8, 8), torch.zeros(12, 8, 8, dtype=torch.long)
        for row in range(12):
            x, y = torch.randint(0, 5, (2,)).tolist()
            image[row, :, y : y + 3, x : x + 3], mask[row, y : y + 3, x : x + 3] = 1.0, 1
        image[::2] = image[::2].flip(-1)
        return (image,), mask.where(
            torch.arange(12)[:, None, None] % 2 == 1, mask.flip(-1)
        ) if masks else mask

    heard = _trained(lambda: nn.Conv2d(1, 2, 1), batch, functional.cross_entropy, 20, lr=0.5)
    history = read_records(heard)
    return [found.word for row in PAIRINGS for found in row.find(history)]


@pytest.mark.parametrize("masks", [True, False])
def test_images_flipped_without_their_masks(masks: bool) -> None:
    found = _flipped(masks=masks)
    assert found == ([] if masks else ["augmentation_wrong"])


def test_inputs_of_another_scale_than_the_weights_are_drawn_for() -> None:
    columns = torch.tensor([1e4, 1.0, 1.0, 1.0])
    for scale, expected in ((columns, True), (torch.ones(4), False)):
        heard = _trained(lambda: nn.Linear(4, 1), lambda scale=scale: _scaled(scale))
        facts = [fact for of in read_records(heard).experiments for fact in of["facts"]]
        (found,) = (fact for fact in facts if fact["name"] == "repair")
        assert found["correction"] == "standardized"
        assert (found["as_is"] > 10 * found["corrected"]) is expected


def _scaled(columns: torch.Tensor) -> tuple[Any, Any]:
    x = torch.randn(32, 4)
    return (x * columns,), x[:, 1:2]


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_a_training_batch_with_the_inputs_of_evaluations(shift: float) -> None:
    torch.manual_seed(0)
    with watched() as heard:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(8):
            (x,), y = _scaled(torch.ones(4))
            optimizer.zero_grad()
            functional.mse_loss(model(x), y).backward()
            optimizer.step()
            if step == 3:
                with torch.no_grad():
                    model.eval()(torch.randn(32, 4) + shift)
                model.train()
    facts = [fact for of in read_records(heard).experiments for fact in of["facts"]]
    found = [fact for fact in facts if fact.get("correction") == "as_evaluated"]
    assert found
    assert all((of["corrected"] > 2 * of["as_is"]) is bool(shift) for of in found)


@pytest.mark.parametrize("alike", [True, False])
def test_views_that_are_drawn_alike(alike: bool) -> None:
    def batch() -> tuple[Any, Any]:
        x = torch.randn(6, 4)
        return (x, x.clone() if alike else x + 0.1 * torch.randn(6, 4)), torch.arange(6)

    def forward(parts: nn.ModuleDict, one: torch.Tensor, other: torch.Tensor) -> Any:
        return parts["encoder"](one) @ parts["encoder"](other).T

    found = _found(
        lambda: _Model(forward, encoder=nn.Linear(4, 8)), batch, functional.cross_entropy
    )
    assert ("augmentation_wrong" in dict(found)) is alike, found


def test_losses_after_steps_of_other_sizes() -> None:
    make = partial(_Model, lambda of, x: of["head"](x[:, -1]), head=nn.Linear(4, 1))
    facts = [f for r in _trained(make, _vectors).of("experiment") for f in r["facts"]]
    step = next(fact for fact in facts if fact["name"] == "step")
    assert step["before"] > step["losses"][0] > step["losses"][1] > step["losses"][2]


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"lr": 0.05}, []),
        ({"lr": 3.0}, ["learning_rate_too_high"]),
        ({"lr": 1e-7}, ["learning_rate_too_low"]),
        ({"lr": 0.05, "maximize": True}, ["optimizer_wrong"]),
    ],
)
def test_steps_that_do_not_lower_the_loss(settings: dict[str, Any], found: list[str]) -> None:
    make = partial(_Model, lambda of, x: of["head"](x[:, -1]), head=nn.Linear(4, 1))
    heard = _trained(make, _vectors, steps=2 * laboratory.FIRST * laboratory.FACTOR, **settings)
    assert [finding.word for finding in _findings(heard)] == found


def test_views_of_one_batch() -> None:
    def batch() -> tuple[Any, Any]:
        windows = torch.randn(COUNT, LENGTH + 1, 4)
        return (windows[:, :LENGTH],), windows[:, LENGTH, :1]

    assert _found(partial(_recurrent, batch_first=True), batch) == []


def test_a_training_that_reuses_its_own_random_numbers() -> None:
    generator = torch.Generator().manual_seed(1)

    def forward(of: Any, x: torch.Tensor) -> Any:
        noise = torch.randn(x.shape, generator=generator)
        return of["head"](functional.dropout(x + noise, 0.2)[:, -1])

    assert _found(lambda: _Model(forward, head=nn.Linear(4, 1)), _vectors) == []


def test_a_state_that_the_model_writes_to() -> None:
    def forward(of: Any, x: torch.Tensor) -> Any:
        seen[0] = x.detach().mean()
        return of["head"](x[:, -1] - seen[0])

    seen = torch.zeros(2)
    heard = _trained(lambda: _Model(forward, head=nn.Linear(4, 1)), _vectors)
    assert [f for f in _findings(heard) if f.word != "input_invalid"] == []
    assert float(seen[1]) == 0


def test_what_is_too_large_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "MOST_BYTES", 1)
    heard = _trained(partial(_recurrent, batch_first=False), _vectors)
    assert {record["problem"] for record in heard.of("experiment")} == {"too much memory"}


def test_nothing_is_left_behind() -> None:
    with watched():
        model = nn.Linear(4, 1)
        for _ in range(laboratory.FIRST + 1):
            model(torch.randn(COUNT, 4)).sum()  # never a backward pass
    assert torch._C._len_torch_dispatch_stack() == 0


def test_a_recording_of_another_loss_is_discarded() -> None:
    model = nn.Linear(4, 1)
    recorder = Recorder(lambda: True, lambda: (None, "", False))
    x = torch.randn(COUNT, 4)
    with recorder:
        loss = model(x).mean()
    number = recorder.number(loss)
    assert number is not None
    recorded = recorder.close()
    recorded.random = [torch.get_rng_state()]
    subject = dependence.RecordedStep(recorded, number, loss.detach() + 1, [0], frozenset())
    with pytest.raises(UnfitError):
        dependence.facts(subject, float("inf"))


@pytest.mark.parametrize("fill", [0.0, float("inf")])
def test_a_minimum_of_what_a_mask_excludes(fill: float) -> None:
    def loss(output: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        same = kinds[:, None] == kinds[None]
        distance = torch.cdist(output, output)
        nearest = distance.masked_fill(same, fill).min(1).values
        farthest = distance.masked_fill(~same, 0.0).max(1).values
        return functional.softplus(1 + farthest - nearest).mean()

    found = _findings(_trained(lambda: nn.Linear(3, 2), _kinds, loss, 8))
    assert [f.word for f in found] == ([] if fill else ["loss_wrong"])
    assert all(f.place and "masked_fill" in f.place.text for f in found)


def _kinds() -> tuple[Any, Any]:
    return (torch.randn(COUNT, 3),), torch.arange(COUNT) % 2


@pytest.mark.parametrize("fill", [1e-9, -1e9])
def test_an_attention_to_what_a_mask_excludes(fill: float) -> None:
    def attend(parts: Any, x: torch.Tensor) -> Any:
        scores = parts["query"](x) @ x.transpose(1, 2)
        padding = (torch.arange(LENGTH) > LENGTH // 2).expand_as(scores)
        return (scores.masked_fill(padding, fill).softmax(-1) @ x).mean(1)

    def batch() -> tuple[Any, Any]:
        return (torch.randn(COUNT, LENGTH, 3),), torch.randn(COUNT, 3)

    found = _findings(_trained(lambda: _Model(attend, query=nn.Linear(3, 3)), batch))
    assert [f.word for f in found] == ([] if fill < 0 else ["input_invalid"])
