"""Whole programs that are watched from their start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import epochzero
from epochzero.injected.companions import with_companions
from epochzero.run.watch.live import (
    RECORDS_FILE,
    WATCH_COMPANIONS,
    WatchOptions,
    watched_environment,
)
from tests.run.watch.child.conftest import Heard
from tests.torch_jobs import light_torch

SOURCE = Path(epochzero.__file__).parent.parent
Watch = Callable[..., tuple[Heard, str]]

TRAINING = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def train():
    for _ in range(3):
        torch.nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
        optimizer.step()
"""


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    """Runs a program, and reads what was seen of it."""

    def run(program: str, *command: str, **environment: str) -> tuple[Heard, str]:
        path, file = tmp_path / "train.py", tmp_path / RECORDS_FILE
        path.write_text(program)
        settings = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", **environment}
        watched = watched_environment(os.environ | settings, tmp_path, WatchOptions())
        done = subprocess.run(
            [sys.executable, *command, str(path)],
            env=with_companions(watched, WATCH_COMPANIONS, tmp_path),
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        lines = file.read_text().splitlines() if file.exists() else []
        heard = Heard(json.loads(line) for line in lines)
        assert heard.of("failed") == []
        return heard, done.stdout

    return run


def test_a_training_is_watched_from_begin_to_end_and_who_only_launches_does_not_write(
    watch: Watch,
) -> None:
    program = light_torch(TRAINING) + (
        "import subprocess, sys\n"
        "if sys.argv[1:]: train()\n"
        "else: subprocess.run([sys.executable, __file__, 'again'], check=True)\n"
    )
    program = program.replace(
        "optimizer = torch", "if __import__('sys').argv[1:]: optimizer = torch"
    )
    heard, _ = watch(program)
    assert [heard[0]["kind"], heard[-1]["kind"]] == ["begun", "ended"]
    assert len(heard.of("begun")) == len(heard.of("ended")) == 1
    assert len(heard.of("iteration")) == 3


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_loader_do_not_write(watch: Watch, context: str) -> None:
    program = light_torch(TRAINING) + (
        "if __name__ == '__main__':\n"
        "    data = torch.utils.data.TensorDataset(torch.zeros(8, 4))\n"
        f"    loader = torch.utils.data.DataLoader(data, 4, num_workers=1, multiprocessing_context='{context}')\n"
        "    for x, in loader:\n"
        "        model(x).sum().backward(); optimizer.step()\n"
    )
    heard, _ = watch(program)
    assert len(heard.of("begun")) == len(heard.of("ended")) == 1
    assert len(heard.of("iteration")) == 2


DISTRIBUTED = """
import os, torch
torch.manual_seed(0)
rank, store = int(os.environ["RANK"]), "file://" + os.path.abspath("store")
# A store in a file: no port that another program may take, no thread that may outlive its process.
torch.distributed.init_process_group("gloo", store, rank=rank, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
torch.manual_seed(torch.distributed.get_rank())
for _ in range(3):
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
os.write(1, f'{model.module.weight.tolist()}\\n'.encode())
torch.distributed.destroy_process_group()
"""


def test_of_several_ranks_the_first_is_watched(watch: Watch) -> None:
    launcher = (
        "import os, subprocess, sys\n"
        f"program = {light_torch(DISTRIBUTED)!r}\n"
        "import torch\n"
        "open('rank.py', 'w').write(program)\n"
        "both = []\n"
        "for rank in range(2):\n"
        "    os.environ['RANK'] = str(rank)\n"
        "    both.append(subprocess.Popen([sys.executable, 'rank.py']))\n"
        # Their status says nothing: gloo's threads abort a Python that shuts down, now and then.
        "for one in both: one.wait()\n"
    )
    heard, said = watch(launcher)
    weights = said.split("\n")
    assert weights[0] == weights[1]
    assert len(heard.of("begun")) == 1
    assert len(heard.of("iteration")) == 3
    assert "0/weight" in heard.of("iteration")[0]["parameters"]


def test_another_version_of_this_package_is_left_to_the_job(watch: Watch, tmp_path: Path) -> None:
    other = tmp_path / "epochzero"
    other.mkdir()
    (other / "__init__.py").write_text("VERSION = 'another'\n")
    program = (
        "import epochzero\n"
        + light_torch(TRAINING)
        + "train()\nimport epochzero\nprint(epochzero.VERSION)\n"
    )
    heard, said = watch(program)
    assert said == "another\n"
    assert len(heard.of("iteration")) == 3
    assert "values" not in heard.of("iteration")[0]


KERAS = """
import numpy, keras
keras.utils.set_random_seed(1)
x = numpy.random.default_rng(0).normal(size=(96, 6)).astype("float32")
y = (x.sum(1) > 0).astype("int32")
model = keras.Sequential([
    keras.layers.Input((6,)),
    keras.layers.Dense(8, activation="relu", name="hidden"),
    keras.layers.Dropout(0.2),
    keras.layers.Dense(2, name="head"),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
told = model.fit(x[:64], y[:64], 16, epochs=2, validation_data=(x[64:], y[64:]), verbose=0)
print(told.history, [w.tolist() for w in model.get_weights()])
"""


@pytest.mark.parametrize("backend", ["torch", "tensorflow", "jax"])
def test_a_training_of_keras(watch: Watch, backend: str, tmp_path: Path) -> None:
    if find_spec("keras") is None or find_spec(backend) is None:
        pytest.skip("no such backend")
    heard, said = watch(KERAS, KERAS_BACKEND=backend)
    bare = subprocess.run(
        [sys.executable, str(tmp_path / "train.py")],
        env=os.environ | {"KERAS_BACKEND": backend, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said == bare.stdout
    assert [len(heard.of(kind)) for kind in ("begun", "root", "optimizer", "model")] == [1] * 4
    assert sum(len(one["losses"]) for one in heard.of("losses")) == 8
    assert len(heard.of("iteration")) == 8
    assert [one["iteration"] for one in heard.of("evaluation")] == [4, 8]
    assert heard.of("evaluation")[0]["accuracy"] is not None
    assert heard.of("loss")[0]["function"] == "cross_entropy"
    layers = {one["path"]: one["place"] for one in heard.of("model")[0]["layers"]}
    assert "Dense(8" in layers["hidden"][2]
    parameters = heard.of("iteration")[0]["parameters"]
    assert parameters["0/hidden.kernel"]["update"]["rms"] > 0
    if backend == "torch":
        assert parameters["0/hidden.kernel"]["gradient"]["rms"] > 0
        assert {"0/hidden", "0/head"} <= set(heard.of("iteration")[0]["layers"])


def test_watching_keras_imports_no_other_backend(watch: Watch, tmp_path: Path) -> None:
    """TensorFlow takes seconds and claims the GPU; `Layer.get_config` of Keras imports it if it can."""
    if find_spec("keras") is None:
        pytest.skip("no Keras")
    (tmp_path / "tensorflow.py").write_text("print('imported')\nraise ImportError\n")
    program = KERAS.replace(
        "keras.utils.set_random_seed(1)", ""
    )  # This function itself imports TensorFlow.
    heard, said = watch(program, KERAS_BACKEND="torch")
    assert "imported" not in said
    (model,) = heard.of("model")
    settings = {one["path"]: one["settings"] for one in model["layers"]}
    assert settings["hidden"]["out_features"] == 8
    assert settings["dropout"]["p"] == 0.2


KERAS_OF_MANY_PARTS = """
import numpy, keras
keras.utils.set_random_seed(1)
x = numpy.random.default_rng(0).normal(size=(80, 5, 3)).astype("float32")
y = keras.utils.to_categorical(x.sum((1, 2)) > 0, 2)
model = keras.Sequential([
    keras.layers.Input((5, 3)),
    keras.layers.GRU(4, name="memory"),
    keras.layers.BatchNormalization(name="norm"),
    keras.layers.Dense(2, activation="softmax", kernel_regularizer="l2", name="head"),
])
rate = keras.optimizers.schedules.CosineDecay(0.01, 100)
optimizer = keras.optimizers.Adam(rate, clipnorm=0.5)
model.compile(optimizer, "categorical_crossentropy")
options = {"class_weight": {1: 3.0, 0: 1.0}, "shuffle": False, "verbose": 0}
model.fit(x, y, 16, epochs=4, validation_split=0.2, **options)
model.get_layer("memory").trainable = False
model.compile("sgd", "categorical_crossentropy")
model.fit(x, y, 16, epochs=1, **options)
"""


def test_keras_shows_what_torch_shows(watch: Watch) -> None:
    if find_spec("keras") is None:
        pytest.skip("no Keras")
    heard, _ = watch(KERAS_OF_MANY_PARTS, KERAS_BACKEND="torch", EPOCHZERO_WATCH_EVERY="1")
    assert [one["class"] for one in heard.of("optimizer")] == ["Adam", "SGD"]
    assert "optimizer = keras.optimizers.Adam" in heard.of("optimizer")[0]["place"][2]
    assert [one["class"] for one in heard.of("scheduler")] == ["CosineDecay"]
    loader = heard.of("loader")[0]
    assert (loader["examples"], loader["batch_size"]) == (64, 16)
    assert loader["sampler"] == "SequentialSampler"
    assert heard.of("loss")[0]["weight"] == [1.0, 3.0]
    assert heard.of("clip")[0]["limit"] == 0.5
    first, frozen = heard.of("model")
    layers = {one["path"]: one for one in first["layers"]}
    assert layers["memory"]["leaf"]
    assert layers["head"]["settings"]["weight_decay"] == pytest.approx(0.02)
    # Running means are no parameters that nobody trains.
    assert [one["name"] for one in first["parameters"] if not one["trainable"]] == []
    assert {one["name"] for one in frozen["parameters"] if not one["trainable"]} == {
        "memory.kernel", "memory.recurrent_kernel", "memory.bias",
    }  # fmt: skip
    iteration = heard.of("iteration")[0]
    assert iteration["function"] == "CategoricalCrossentropy"
    assert set(iteration["target"]["classes"]) == {"0", "1"}
    assert iteration["accuracy"] is not None
    assert iteration["clippings"][0]["norm"] > 0
    assert [kind for _, kind in iteration["order"]][-1] == "softmax"
    evaluation = heard.of("evaluation")[-1]
    assert evaluation["inputs"][0]["rows"]
    assert evaluation["accuracy"] is not None


LIGHTNING = """
import torch, lightning
from torch.nn import functional
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
    def loss(self, batch):
        return functional.cross_entropy(self.head(functional.relu(self.encoder(batch[0]))), batch[1])
    def training_step(self, batch, number):
        return self.loss(batch)
    def validation_step(self, batch, number):
        self.log("val_loss", self.loss(batch))
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randint(2, (64,)))
load = torch.utils.data.DataLoader
lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False).fit(Model(), load(data, 16, shuffle=True), load(data, 16))
"""


def test_a_training_of_lightning(watch: Watch) -> None:
    if find_spec("lightning") is None:
        pytest.skip("no lightning")
    heard, _ = watch(LIGHTNING)
    assert len(heard.of("root")) == 1
    assert len(heard.of("iteration")) == 8
    first, second = (
        one["parameters"]["0/head.bias"]["gradient"] for one in heard.of("iteration")[:2]
    )
    assert first != second
    # The first is what Lightning calls its sanity check.
    assert [one["iteration"] for one in heard.of("evaluation")] == [0, 4, 8]
    assert {"0/encoder", "0/encoder:relu", "0/head"} <= set(heard.of("iteration")[0]["layers"])
