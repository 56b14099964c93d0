"""Whole programs that are watched from their start."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import epochzero
from tests.run.watch.child.conftest import Heard

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
        path, file = tmp_path / "train.py", tmp_path / "watched.jsonl"
        path.write_text(program)
        start = SOURCE / "epochzero" / "run" / "watch" / "child" / "start"
        settings = {
            "PYTHONPATH": os.pathsep.join(map(str, (start, SOURCE))),
            "EPOCHZERO_WATCH_FILE": str(file),
            "OMP_NUM_THREADS": "1",
            **environment,
        }
        done = subprocess.run(
            [sys.executable, *command, str(path)],
            env=os.environ | settings,
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


def test_a_training_is_watched_from_begin_to_end(watch: Watch) -> None:
    heard, _ = watch(TRAINING + "train()")
    assert [heard[0]["kind"], heard[-1]["kind"]] == ["begun", "ended"]
    assert len(heard.of("iteration")) == 3


def test_who_only_launches_does_not_write(watch: Watch) -> None:
    program = TRAINING + (
        "import subprocess, sys\n"
        "if sys.argv[1:]: train()\n"
        "else: subprocess.run([sys.executable, __file__, 'again'], check=True)\n"
    )
    program = program.replace(
        "optimizer = torch", "if __import__('sys').argv[1:]: optimizer = torch"
    )
    heard, _ = watch(program)
    assert len(heard.of("begun")) == len(heard.of("ended")) == 1
    assert len(heard.of("iteration")) == 3


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_loader_do_not_write(watch: Watch, context: str) -> None:
    program = TRAINING + (
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
torch.distributed.init_process_group("gloo")
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
        f"program = {DISTRIBUTED!r}\n"
        "import torch\n"
        "open('rank.py', 'w').write(program)\n"
        "both = []\n"
        "for rank in range(2):\n"
        "    os.environ['RANK'] = str(rank)\n"
        "    both.append(subprocess.Popen([sys.executable, 'rank.py']))\n"
        "sys.exit(sum(one.wait() for one in both))\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    settings = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                "USE_LIBUV": "0"}  # fmt: skip
    heard, said = watch(launcher, **settings)
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
        "import epochzero\n" + TRAINING + "train()\nimport epochzero\nprint(epochzero.VERSION)\n"
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
