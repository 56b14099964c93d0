"""Trainers of libraries, run dry: their checkpoints and callbacks are what is wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from epochzero.check import CheckResult, Limits, Target, check
from epochzero.check.dryrun.records import Record, ResumeRecord

HERE = Target(name="here", here=True, gpus=())


def dry(
    folder: Path,
    script: str,
    hear: Callable[[Record], None] = lambda _: None,
    command: Sequence[str] = (sys.executable,),
) -> CheckResult:
    """Checks a script dry alone."""
    (folder / "train.py").write_text(dedent(script))
    return check(
        [*command, "train.py"],
        HERE,
        folder=folder,
        environment=dict(os.environ),
        select=["dry-run-failed"],
        dry=Limits(seconds=60),
        on_record=hear,
    )


def test_a_job_that_does_not_compile_imports_no_compiler(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the script trains with torch")
    checked = dry(
        tmp_path,
        """
        import sys, torch
        layer = torch.nn.Linear(4, 4)
        optimizer = torch.optim.AdamW(layer.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            layer(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        assert "torch._dynamo" not in sys.modules
        assert torch.compile(layer)(torch.ones(2, 4)).shape == (2, 4)
        import torch._dynamo
        optimizer.step()
        """,
    )
    assert [finding.message for finding in checked.findings] == []
    assert checked.dry[0].ended == "finished"


LIGHTNING = """
import torch, lightning
from torch.utils.data import DataLoader, TensorDataset

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 4)
    def loss(self, batch):
        return torch.nn.functional.cross_entropy(self.fc(batch[0]), batch[1])
    def training_step(self, batch, _):
        return self.loss(batch)
    def validation_step(self, batch, _):
        self.log("val_loss", self.loss(batch))
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())

data = TensorDataset(torch.randn(4000, 8), torch.randint(0, 4, (4000,)))
"""


def test_lightning_checkpoints_are_made(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="the script trains with Lightning")
    script = """
keep = lightning.pytorch.callbacks.ModelCheckpoint(monitor="val_los")
trainer = lightning.Trainer(max_epochs=500, callbacks=[keep], logger=False)
trainer.fit(Net(), DataLoader(data), DataLoader(data))
"""
    found = dry(tmp_path, LIGHTNING + script.lstrip())
    (finding,) = found.findings
    assert "could not find the monitored key" in finding.consequence
    assert (finding.place.line, finding.phase) == (21, "training")


def test_lightning_goes_back_to_its_best_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="the script trains with Lightning")
    script = """
keep = lightning.pytorch.callbacks.ModelCheckpoint(monitor="val_loss", every_n_epochs=10)
trainer = lightning.Trainer(max_epochs=500, callbacks=[keep], logger=False, check_val_every_n_epoch=5)
trainer.fit(Net(), DataLoader(data), DataLoader(data))
trainer.validate(dataloaders=DataLoader(data), ckpt_path="best")
"""
    assert not dry(tmp_path, LIGHTNING + script.lstrip()).findings


OF_TWO_RANKS = """
class Sharded(Net):
    def training_step(self, batch, index):
        if RANK and self.global_rank:
            raise ValueError("no shard for this rank")
        return self.loss(batch)

lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False).fit(Sharded(), DataLoader(data))
"""
TORCHRUN = (str(Path(sys.executable).with_name("torchrun")), "--nproc-per-node=2")


@pytest.mark.parametrize("command", [(sys.executable,), TORCHRUN], ids=["lightning", "torchrun"])
@pytest.mark.parametrize("rank", ["0", "1"])
def test_ranks_of_lightning(tmp_path: Path, command: Sequence[str], rank: str) -> None:
    pytest.importorskip("lightning", reason="the script trains with Lightning")
    script = LIGHTNING + OF_TWO_RANKS.lstrip().replace("RANK", rank, 1)
    found = dry(tmp_path, script, command=command).findings
    assert [finding.place.line for finding in found] == ([22] if rank == "1" else [])
    assert all("on rank 1" in finding.message for finding in found)


def test_the_smaller_last_batch_of_a_trainer_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="the script trains with Lightning")
    script = """
class Scored(Net):
    def validation_step(self, batch, _):
        self.scores = [*getattr(self, "scores", ()), self.fc(batch[0])]
    def on_validation_epoch_end(self):
        torch.stack(self.scores)

validation = DataLoader(TensorDataset(*data[:70]), batch_size=8)
lightning.Trainer(max_epochs=500, logger=False, num_sanity_val_steps=0).fit(Scored(), DataLoader(data), validation)
"""
    (finding,) = dry(tmp_path, LIGHTNING + script.lstrip()).findings
    assert (finding.place.line, finding.category) == (24, "tensor_mismatch")


def test_transformers_evaluates_and_saves(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the script trains with Transformers")
    pytest.importorskip("accelerate", reason="its trainer needs accelerate")
    found = dry(
        tmp_path,
        """
        import torch
        from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

        size = dict(hidden_size=16, num_attention_heads=2, intermediate_size=32)
        config = BertConfig(vocab_size=100, num_hidden_layers=1, num_labels=2, **size)
        model = BertForSequenceClassification(config)
        ids = torch.randint(0, 100, (400, 12))
        data = [{"input_ids": row, "labels": torch.tensor(n % 2)} for n, row in enumerate(ids)]
        arguments = TrainingArguments(
            "out", num_train_epochs=50, eval_strategy="epoch", save_strategy="epoch", report_to=[],
            load_best_model_at_end=True, metric_for_best_model="accuracy", use_cpu=True,
        )
        metrics = lambda _: {"acc": 1.0}
        Trainer(model, arguments, train_dataset=data, eval_dataset=data, compute_metrics=metrics).train()
        """,
    )
    (finding,) = found.findings
    assert "eval_accuracy" in finding.consequence
    assert (finding.category, finding.phase) == ("key_not_found", "training")


def test_outputs_of_different_shape_in_an_evaluation_are_certain(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the script trains with Transformers")
    pytest.importorskip("accelerate", reason="its trainer needs accelerate")
    found = dry(
        tmp_path,
        """
        import time
        import numpy as np
        import torch
        from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
        from transformers import TrainerCallback

        class Slow(TrainerCallback):
            def on_step_end(self, *arguments, **options):
                time.sleep(0.5)

        size = dict(hidden_size=16, num_attention_heads=2, intermediate_size=32, num_labels=2)
        config = BertConfig(vocab_size=100, num_hidden_layers=1, output_hidden_states=True, **size)
        model = BertForSequenceClassification(config)
        ids = torch.randint(0, 100, (40, 12))
        data = [{"input_ids": row, "labels": torch.tensor(n % 2)} for n, row in enumerate(ids)]
        arguments = TrainingArguments("out", num_train_epochs=5000, report_to=[], use_cpu=True)
        metrics = lambda told: {"classes": float(np.asarray(told.predictions).argmax(-1).max())}
        trainer = Trainer(
            model, arguments, train_dataset=data, eval_dataset=data, compute_metrics=metrics,
            callbacks=[Slow()],
        )
        trainer.train()
        trainer.evaluate()
        """,
    )
    (finding,) = found.findings
    assert "inhomogeneous shape" in finding.consequence
    assert finding.severity == "error"


LATE = """
import time
class Slow(Net):
    def training_step(self, batch, _):
        time.sleep(SECONDS)
        return self.loss(batch)
net, seen = Slow(), []
class Epochs(lightning.Callback):
    def on_train_epoch_end(self, trainer, module):
        seen.append(1)
lightning.Trainer(max_epochs=20, callbacks=[Epochs()], logger=False, limit_train_batches=2).fit(net, DataLoader(data))
"""


@pytest.mark.parametrize(("pause", "told"), [(0.001, []), (5, ["warning"])])
def test_what_a_shortened_trainer_may_cause_is_no_error(
    tmp_path: Path, pause: float, told: list[str]
) -> None:
    pytest.importorskip("lightning", reason="the script trains with Lightning")
    script = LATE.replace("SECONDS", str(pause)) + "print(seen[19])\n"
    found = dry(tmp_path, LIGHTNING + script.lstrip())
    assert [one.severity for one in found.findings] == told


def test_a_job_goes_on_from_the_state_that_accelerate_saved(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="the script trains with Accelerate")
    script = """
        import argparse, os, torch, accelerate
        parser = argparse.ArgumentParser()
        parser.add_argument("--resume_from_checkpoint")
        options = parser.parse_args()
        accelerator = accelerate.Accelerator(cpu=True)
        model = accelerator.prepare(torch.nn.Linear(8, 4))
        if options.resume_from_checkpoint:
            accelerator.load_state(options.resume_from_checkpoint)
            print(torch.load(os.path.join(options.resume_from_checkpoint, "metrics.pt")))
        accelerator.save_state("state")
        """
    (finding,) = dry(tmp_path, script).findings
    assert (finding.severity, finding.category) == ("warning", "path_not_found")
    assert "/state" in finding.message


def test_a_job_of_hydra_goes_on_by_a_key_of_its_configuration(tmp_path: Path) -> None:
    pytest.importorskip("hydra", reason="the script is configured by Hydra")
    pytest.importorskip("torch", reason="the script saves with torch")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "main.yaml").write_text("train:\n  lr: 0.1\n  resume: null\n")
    script = """
        import hydra, torch

        @hydra.main(config_path="conf", config_name="main", version_base="1.1")
        def main(cfg):
            model = torch.nn.Linear(8, 4)
            if cfg.train.resume:
                print(torch.load(cfg.train.resume)["step"])
            torch.save({"model": model.state_dict()}, "a=1.pt")

        main()
        """
    (finding,) = dry(tmp_path, script).findings
    assert (finding.severity, finding.category) == ("warning", "key_not_found")
    assert "train.resume='" in finding.message


def test_lightning_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="the script trains with Lightning")
    script = """
class Resumed(Net):
    def on_load_checkpoint(self, checkpoint):
        self.best = checkpoint["best_loss"]

import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--ckpt_path")
options = parser.parse_args()
trainer = lightning.Trainer(max_epochs=4, logger=False)
trainer.fit(Resumed(), DataLoader(data, batch_size=400), ckpt_path=options.ckpt_path)
"""
    (finding,) = dry(tmp_path, LIGHTNING + script.lstrip()).findings
    assert (finding.severity, finding.category) == ("warning", "key_not_found")
    assert "when it goes on from what it saved: --ckpt_path" in finding.message


def test_transformers_goes_on_from_its_checkpoint_and_not_from_a_saved_model(
    tmp_path: Path,
) -> None:
    pytest.importorskip("transformers", reason="the script trains with Transformers")
    pytest.importorskip("accelerate", reason="so does its Trainer")
    script = """
import argparse, torch
from transformers import Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--resume_from_checkpoint")
options = parser.parse_args()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 1)
    def forward(self, x, labels):
        out = self.fc(x)
        return {"loss": (out - labels).pow(2).mean(), "logits": out}

rows = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(64)]
given = TrainingArguments("out", num_train_epochs=2, save_strategy="epoch", report_to=[], use_cpu=True)
trainer = Trainer(model=Net(), args=given, train_dataset=rows)
trainer.train(resume_from_checkpoint=options.resume_from_checkpoint)
trainer.save_model("out/final")
"""
    told: list[Record] = []
    found = dry(tmp_path, script, told.append)
    assert not found.findings
    (resumed,) = (one for one in told if isinstance(one, ResumeRecord))
    assert resumed.argv[-1].endswith("out/checkpoint-3")


KERAS = """
import keras
import numpy as np

x, y = np.random.rand(60000, 8).astype("float32"), np.random.randint(0, 3, 60000)
model = keras.Sequential([keras.layers.Dense(16), keras.layers.Dense(3)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss)
keep = keras.callbacks.ModelCheckpoint("epoch-{epoch:02d}.keras")
"""


@pytest.mark.parametrize(
    ("backend", "library"), [("jax", "jax"), ("tensorflow", "tensorflow"), ("torch", "torch")]
)
def test_keras_runs_its_last_epoch_and_answers_for_each_sample(
    backend: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("keras", reason="the script trains with Keras")
    pytest.importorskip(library, reason="the backend of Keras")
    monkeypatch.setenv("KERAS_BACKEND", backend)
    script = """
model.fit(x, y, 32, 40, callbacks=[keep], verbose=0)
predicted = keras.models.load_model("epoch-40.keras").predict(x).argmax(1)
print((predicted == y).mean(), missing)
"""
    found = dry(tmp_path, KERAS + script.lstrip())
    (finding,) = found.findings
    assert (finding.category, finding.place.line) == ("undefined_variable", 12)
    assert {"data", "optimizer step", "save", "load"} <= {
        part.name for part in found.dry[0].parts if part.reached
    }


def test_a_loop_around_a_compiled_step_of_jax_is_shortened(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="the script trains with JAX")
    found = dry(
        tmp_path,
        """
        import time
        import jax

        step = jax.jit(jax.value_and_grad(lambda w: (w**2).sum()))
        w = jax.numpy.ones(3)
        for number in range(1000):
            loss, gradient = step(w)
            w -= 0.1 * gradient
            time.sleep(0.5)
        print(w.reshape(2, 2))
        """,
    )
    (finding,) = found.findings
    assert (finding.category, finding.place.line) == ("tensor_mismatch", 11)


def test_a_step_of_jax_that_takes_too_long_is_evaluated_in_shapes(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="the script trains with JAX")
    found = dry(
        tmp_path,
        """
        import jax
        from jax import numpy as jnp

        @jax.jit
        def step(weights, x):
            loss, gradient = jax.value_and_grad(lambda w: ((x @ w) ** 2).mean())(weights)
            return weights - 0.1 * gradient, loss

        weights = jnp.ones((4096, 4096))
        for number in range(10):
            weights, loss = step(weights, jnp.ones((1 << 15, 4096)))
            print(float(loss))
        print(weights.reshape(4096, 2048))
        """,
    )
    (finding,) = found.findings
    assert (finding.category, finding.place.line) == ("tensor_mismatch", 14)
    told = [one.what for one in found.dry[0].assumptions]
    assert any("2e+12 operations returns ones" in what for what in told)


def test_a_gpu_that_tensorflow_would_have_is_not_missing(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="the script asks it for a GPU")
    (tmp_path / "train.py").write_text(
        "import tensorflow as tf\n"
        'gpus = tf.config.list_physical_devices("GPU")\n'
        "tf.config.experimental.set_memory_growth(gpus[0], True)\n"
    )
    found = check(
        [sys.executable, "train.py"],
        "A100",
        folder=tmp_path,
        environment=dict(os.environ),
        select=["dry-run-failed"],
        dry=Limits(seconds=60),
    )
    assert not found.findings
    reasons = [one.reason for one in found.dry[0].unknowns]
    assert any("needs a GPU" in reason for reason in reasons)
    assert any("no GPU is pretended for TensorFlow" in reason for reason in reasons)


FITTED = """
import numpy
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

x = numpy.random.default_rng(0).random((60000, 10))
y = numpy.array(["no"] * 59990 + ["yes"] * 10)
model = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, 10]}, cv=3).fit(x, y)
assert set(model.classes_) == {"no", "yes"}
model.predict(x[:10])
model.predict_proba(x)
"""


def test_an_estimator_is_fitted_to_few_rows_of_all_classes(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the script fits its estimators")
    found = dry(tmp_path, FITTED.lstrip())
    (finding,) = found.findings
    assert (finding.severity, finding.place.line) == ("error", 12)
    told = [one.what for one in found.dry[0].assumptions]
    assert told == ["GridSearchCV is fitted to about 5,000 of 60,000 rows"]


XGBOOST = """
import xgboost
data = xgboost.DMatrix(x, y)
options = {"early_stopping_rounds": 50, "evals": [(data, "val")], "verbose_eval": False}
model = xgboost.train({}, data, 200_000, **options)
model.save_model("model.json")
xgboost.XGBRegressor(n_estimators=200_000).fit(x, y)
"""
LIGHTGBM = """
import lightgbm
data = lightgbm.Dataset(x, y)
model = lightgbm.train({"verbose": -1, "n_estimators": 200_000}, data)
model.save_model("model.txt")
lightgbm.LGBMRegressor(n_estimators=200_000, verbose=-1).fit(x, y)
"""


@pytest.mark.parametrize(("library", "script"), [("xgboost", XGBOOST), ("lightgbm", LIGHTGBM)])
def test_boosting_has_few_rounds(tmp_path: Path, library: str, script: str) -> None:
    pytest.importorskip(library, reason="the script trains with it")
    data = "import numpy\nx = numpy.random.default_rng(0).random((20000, 10))\ny = x.sum(1)\n"
    found = dry(tmp_path, data + script.lstrip() + "print(missing)\n")
    (finding,) = found.findings
    assert (finding.severity, finding.phase) == ("error", "evaluation")
    (run,) = found.dry
    assert {"forward", "optimizer step", "save"} <= {one.name for one in run.parts if one.reached}
    told = [one.what for one in run.assumptions]
    assert told == ["boosting with 3 of 200,000 rounds"] * 2
