"""``epochzero.watch`` in the process that trains."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import epochzero

torch = pytest.importorskip("torch")

from epochzero.run.watch.child.begin import active  # noqa: E402
from epochzero.run.watch.sources import layer_places  # noqa: E402

HERE = Path(__file__)


class Net(torch.nn.Module):
    """A model with layers of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.body = torch.nn.Sequential(
            torch.nn.Linear(8, 8),
            torch.nn.Tanh(),
        )
        self.named = torch.nn.Sequential(
            OrderedDict(
                [
                    ("one", torch.nn.Linear(8, 8)),
                    ("two", torch.nn.ReLU()),
                ]
            )
        )
        self.several = torch.nn.ModuleList([torch.nn.Linear(8, 8) for _ in range(2)])
        self.by_name = torch.nn.ModuleDict(
            {
                "a": torch.nn.Identity(),
                "b": torch.nn.Linear(8, 8),
            }
        )
        layers = [torch.nn.Linear(8, 2), torch.nn.Identity()]
        self.head = torch.nn.Sequential(*layers)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        out = self.named(self.body(self.first(inputs)))
        for layer in self.several:
            out = layer(out)
        return self.head(self.by_name["b"](out))


def line_of(text: str) -> int:
    lines = HERE.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, *, clear: bool) -> None:
    torch.manual_seed(0)
    inputs = torch.randn(32, 4)
    labels = (inputs.sum(1) > 0).long()
    for _ in range(12):
        if clear:
            optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        epochzero.watch_tensor("logits", model(inputs))
        optimizer.step()


def made() -> tuple[Net, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def test_a_fault_is_found_and_logged(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    model, optimizer = made()
    before = torch.nn.Module.__call__
    with caplog.at_level(logging.WARNING, "epochzero"), epochzero.watch(model, optimizer) as found:
        train(model, optimizer, clear=False)
    assert torch.nn.Module.__call__ is before
    assert not active()
    root = found.watched.root
    assert root is not None
    assert root.word == "zero_grad_missing"
    assert root.place is not None
    assert root.place.line == line_of("loss" + ".backward()")
    told = [one.getMessage() for one in caplog.records if one.name == "epochzero"]
    assert "Gradients are not cleared" in told[0]
    assert found.findings[0] is root


def test_a_good_training_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with epochzero.watch(model, optimizer, fail_on="any") as found:
        train(model, optimizer, clear=True)
    assert found.findings == ()
    assert not caplog.records


def test_it_does_not_change_the_training() -> None:
    weights = []
    for watched in (False, True):
        model, optimizer = made()
        if watched:
            with epochzero.watch(model, optimizer):
                train(model, optimizer, clear=True)
        else:
            train(model, optimizer, clear=True)
        weights.append(torch.cat([value.flatten() for value in model.parameters()]))
    assert torch.equal(*weights)


def test_fail_on_raises_from_the_step() -> None:
    model, optimizer = made()
    watching = epochzero.watch(model, optimizer, fail_on="zero_grad_missing")
    with pytest.raises(epochzero.TrainingFault, match="zero_grad") as raised:
        train(model, optimizer, clear=False)
    watching.close()
    assert raised.value.finding.word == "zero_grad_missing"


def test_an_error_of_the_training_stays_what_it_is() -> None:
    model, optimizer = made()
    with (
        pytest.raises(ZeroDivisionError),
        epochzero.watch(model, optimizer, fail_on="zero_grad_missing"),
    ):
        _ = 1 / 0


def test_layers_that_were_made_before_have_their_lines() -> None:
    model, optimizer = made()
    with epochzero.watch(model, optimizer) as found:
        train(model, optimizer, clear=True)
    places = {layer.path: layer.place for layer in found.history.layers}
    wanted = {
        "first": "self.first =",
        "body.0": "Linear(8, 8),",
        "body.1": "nn.Tanh(),",
        "named.one": '"one", ',
        "named.two": '"two", ',
        "several.1": "for _ in range(2)",
        "by_name.b": '"b": ',
        "head.0": "*layers",
    }
    for path, text in wanted.items():
        place = places[path]
        assert place is not None, path
        assert place.line == line_of(text), path


def test_a_model_that_is_no_class_is_found_where_it_is_assigned() -> None:
    plain = torch.nn.Sequential(
        torch.nn.Linear(4, 3),
        torch.nn.Linear(3, 2),
    )
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.05)
    with epochzero.watch(plain, optimizer) as found:
        train(plain, optimizer, clear=True)
    layers = {layer.path: layer.place for layer in found.history.layers}
    assert layers["1"] is not None
    assert layers["1"].line == line_of("Linear(3, 2)")
    assert found.history.optimizers[0]["place"][1] == line_of("SGD(plain")


def test_what_the_source_does_not_show_has_no_line() -> None:
    assert layer_places(torch.nn.TransformerEncoderLayer(8, 2)) == {}


def test_values_of_layers_and_tensors_are_kept() -> None:
    model, optimizer = made()
    with epochzero.watch(model, optimizer, values=("body.1", "first.weight")) as found:
        train(model, optimizer, clear=True)
    kept = [one.values for one in found.history.iterations]
    assert {"body.1", "first.weight", "logits"} <= set(kept[-1])
    assert kept[-1]["body.1"]["p5"] <= kept[-1]["body.1"]["p50"] <= kept[-1]["body.1"]["p95"]
    assert -1 <= kept[-1]["body.1"]["min"] <= kept[-1]["body.1"]["max"] <= 1


def test_an_optimizer_that_nobody_told_of_is_found() -> None:
    model, optimizer = made()
    with epochzero.watch() as found:
        train(model, optimizer, clear=True)
        assert torch.is_grad_enabled()
    assert found.history.optimizers[0]["class"] == "SGD"
    assert found.history.count == 12


def test_a_tensor_of_nobody_who_watches_is_let_go() -> None:
    epochzero.watch_tensor("any", torch.ones(2))


def test_lightning_is_watched_and_stopped(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    from epochzero.integrations import LightningWatch

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False
            self.net = torch.nn.Linear(4, 2)

        def training_step(self, batch: list[torch.Tensor], number: int) -> None:
            loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
            self.manual_backward(loss)
            self.optimizers().step()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    inputs = torch.randn(128, 4)
    data = torch.utils.data.TensorDataset(inputs, (inputs.sum(1) > 0).long())
    callback = LightningWatch(fail_on="any", every=1, report=str(tmp_path / "page.html"))
    trainer = lightning.Trainer(
        max_epochs=200, callbacks=[callback], logger=False, enable_checkpointing=False,
        enable_progress_bar=False, accelerator="cpu",
    )  # fmt: skip
    trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=16))
    assert callback.watching is not None
    assert callback.watching.watched.root is not None
    assert callback.watching.watched.root.word == "zero_grad_missing"
    assert trainer.global_step < 1600
    assert (tmp_path / "page.html").exists()


def train_with_transformers(folder: Path, callback: Any, rate: float) -> Any:
    """A small GPT-2 that begins at random learns to count, over 24 steps; its trainer."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocab_size": 96, "n_positions": 8, "n_embd": 16, "n_layer": 1, "n_head": 2}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config)
    rows = (torch.arange(8) + torch.arange(96).unsqueeze(1)) % 96
    arguments = transformers.TrainingArguments(
        str(folder), num_train_epochs=4, per_device_train_batch_size=16, report_to=[], learning_rate=rate,
        lr_scheduler_type="constant", save_strategy="no", disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    data = [{"input_ids": row, "labels": row} for row in rows]
    trainer = transformers.Trainer(model, arguments, train_dataset=data, callbacks=[callback])
    trainer.train()
    return trainer


def test_transformers_is_watched(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from epochzero.integrations import TransformersWatch

    callback = TransformersWatch(every=1)
    train_with_transformers(tmp_path, callback, rate=3e-3)
    assert callback.watching is not None
    assert callback.watching.watched.iterations == 24
    # It still falls by much at the end, and that is all there is to say.
    assert [one.word for one in callback.watching.findings] == ["epochs_too_few"]
    history = callback.watching.history
    assert history.loss[-1, 1] < history.loss[0, 1]
    assert "transformer.h.0.attn.c_attn" in {layer.path for layer in history.layers}
    assert history.optimizers[0]["class"] == "AdamW"


def test_transformers_is_stopped(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from epochzero.integrations import TransformersWatch

    page = tmp_path / "page.html"
    callback = TransformersWatch(every=1, fail_on="learning_rate_too_high", report=str(page))
    trainer = train_with_transformers(tmp_path, callback, rate=3.0)
    assert callback.watching is not None
    assert callback.watching.fault is not None
    assert callback.watching.fault.word == "learning_rate_too_high"
    assert trainer.state.global_step < 24
    assert page.exists()


KERAS = """
import keras, numpy
from epochzero.integrations import KerasWatch

before = keras.Model.fit
inputs = numpy.random.default_rng(0).normal(size=(64, 4)).astype("float32")
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2, name="only")])
model.compile("sgd", "mse")
watch = KerasWatch(every=1)
model.fit(inputs, inputs[:, :2], 16, epochs=2, validation_split=0.25, verbose=0, callbacks=[watch])
history = watch.watching.history
assert keras.Model.fit is before
assert history.count == len(history.loss) == len(history.iterations) == 6, history
assert [one.iteration for one in history.evaluations] == [3, 6]
assert [one.path for one in history.layers] == ["only"]
assert len(history.optimizers) == 1
"""


@pytest.mark.parametrize("backend", ["torch", "tensorflow", "jax"])
def test_keras_is_watched(backend: str) -> None:
    if find_spec("keras") is None or find_spec(backend) is None:
        pytest.skip("no such backend")
    variables = os.environ | {"KERAS_BACKEND": backend}
    done = subprocess.run(
        [sys.executable, "-c", KERAS], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
