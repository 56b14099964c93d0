"""Whole scripts, run dry as on a GPU: the memory that they take, from the command to the finding."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from epochzero.check import Checked, Limits, Target, check
from epochzero.check.target.model import GPU
from epochzero.cli.check import command

pytest.importorskip("torch", reason="the scripts train with torch")

MIB = 1 << 20
SCRIPT = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=256)
width = parser.parse_args().width
model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(4)))
model.to("cuda")
optimizer = torch.optim.Adam(model.parameters())
for step in range(1000):
    x = torch.randn(8, width, device="cuda")
    loss = model(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


KERAS = """\
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy
layers = [keras.Input((256,)), keras.layers.Dense(256, "relu"), keras.layers.Dense(4)]
model = keras.Sequential(layers)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = numpy.zeros((640, 256), "float32"), numpy.zeros(640, "int64")
model.fit(x, y, batch_size=64, epochs=30)
model.evaluate(x, y)
"""


def run(folder: Path, target: Target, *arguments: str, script: str = SCRIPT) -> Checked:
    (folder / "train.py").write_text(script)
    return check(
        [sys.executable, "train.py", *arguments],
        target,
        folder=folder,
        environment=dict(os.environ),
        select=["dry-run-failed", "dry-run-memory"],
        dry=Limits(seconds=60),
    )


def with_gpu(mebibytes: int) -> Target:
    return Target(name="cluster", gpus=(GPU("a GPU", mebibytes * MIB, (8, 0)),))


def test_the_memory_of_a_job_is_told(tmp_path: Path) -> None:
    found = run(tmp_path, with_gpu(8192))
    assert found.findings == ()
    (dry,) = found.dry
    assert (dry.modes, dry.ended) == (("real", "fake"), "finished")
    assert dry.memory is not None
    assert dry.memory.by_kind["parameter"] == 4 * 256 * 256 * 4
    assert dry.memory.by_kind["optimizer"] == 2 * 4 * 256 * 256 * 4
    assert dry.memory.fit.answer == "fits"
    assert {holder.site.path for holder in dry.memory.holders} == {"train.py"}
    assert found.to_dict()["dry"][0]["memory"]["fit"]["answer"] == "fits"


def test_a_job_that_does_not_fit_is_an_error_at_its_line(tmp_path: Path) -> None:
    found = run(tmp_path, with_gpu(2048), "--width", "16384")
    (finding,) = found.findings
    assert (finding.rule, finding.severity) == ("dry-run-memory", "error")
    assert (finding.category, finding.phase) == ("gpu_out_of_memory", "training")
    assert (finding.place.path, finding.place.line) == ("train.py", 8)
    assert "Tried to allocate 1 GiB" in finding.consequence


def test_a_job_on_a_target_without_gpus_takes_no_memory_of_one(tmp_path: Path) -> None:
    found = run(tmp_path, Target(name="cluster", gpus=()))
    assert found.dry[0].memory is None


def test_keras_on_torch_trains_on_a_pretended_gpu(tmp_path: Path) -> None:
    pytest.importorskip("keras", reason="the script trains with Keras")
    found = run(tmp_path, with_gpu(8192), script=KERAS)
    assert (found.findings, found.unknowns) == ((), ())
    (dry,) = found.dry
    assert "optimizer step" in {part.name for part in dry.parts if part.reached}
    assert dry.memory is not None
    parameters = 256 * 256 + 256 + 256 * 4 + 4
    assert dry.memory.by_kind["parameter"] == 4 * parameters
    # Adam's two states for each; the learning rate and the number of steps.
    assert 0 <= dry.memory.by_kind["optimizer"] - 2 * 4 * parameters <= 16


def test_the_command_tells_and_draws_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    drawn = tmp_path / "memory.svg"
    arguments = ["--target", "T4", "--chdir", str(tmp_path), "--select", "dry-run-memory"]
    arguments += ["--memory-picture", str(drawn), "--", sys.executable, "train.py"]
    ran = CliRunner().invoke(command, arguments)
    assert ran.exit_code == 0
    told = " ".join(ran.output.split())
    assert "fits on Tesla T4 with 15 GiB" in told
    assert "Held by" in told
    assert "train.py:8: parameter" in told
    ElementTree.fromstring(drawn.read_text())
