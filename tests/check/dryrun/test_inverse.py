"""The largest value of a job's option: found in its parser, tried by dry runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from epochzero.check import Limits, Target, check
from epochzero.check.dryrun.inverse import NumericOption, option_of
from epochzero.check.findings import Unknown
from epochzero.check.launch import read_job
from epochzero.check.program.interpreter import read_program
from epochzero.check.program.model import Program
from epochzero.check.target.model import GPU

SCRIPT = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("-n", "--layer_count", type=int, default=1)
parser.add_argument("--name", default="a")
options = parser.parse_args()
layers = (torch.nn.Linear(2048, 4096, bias=False) for _ in range(options.layer_count))
model = torch.nn.ModuleList(layers).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    x = torch.ones(2, 2048, device="cuda")
    sum(layer(x).sum() for layer in model).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def program(folder: Path, *arguments: str) -> Program:
    (folder / "train.py").write_text(SCRIPT)
    (job,) = read_job((sys.executable, "train.py", *arguments), folder, {}).jobs
    return read_program(job, Target(name="cluster"))


@pytest.mark.parametrize("name", ["layer-count", "--layer_count", "n"])
def test_an_option_is_found_by_its_name(name: str, tmp_path: Path) -> None:
    assert option_of(program(tmp_path), name) == NumericOption("--layer_count", 1)
    assert option_of(program(tmp_path, "-n", "64"), name) == NumericOption("--layer_count", 64)


@pytest.mark.parametrize("name", ["name", "batch-size"])
def test_what_is_no_number_or_no_option_is_unknown(name: str, tmp_path: Path) -> None:
    assert isinstance(option_of(program(tmp_path), name), Unknown)


def test_the_last_value_counts(tmp_path: Path) -> None:
    job = program(tmp_path, "-n", "64").job
    assert NumericOption("--layer_count", 64).given(job, 96).argv == (
        "-n",
        "64",
        "--layer_count=96",
    )


@pytest.mark.usefixtures("preloaded")
def test_the_largest_value_that_fits_is_found_by_running_the_job(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the script trains with torch")
    (tmp_path / "train.py").write_text(SCRIPT)
    found = check(
        [sys.executable, "train.py"],
        Target(name="cluster", gpus=(GPU("a GPU", 2048 << 20, (8, 0)),)),
        folder=tmp_path,
        environment=dict(os.environ),
        select=["dry-run-memory"],
        dry=Limits(seconds=60),
        fit="layer-count",
    )
    (run,) = found.dry
    assert run.smallest_gpu is not None
    assert run.largest is not None
    assert run.largest.option == "--layer_count"
    assert [one.value for one in run.largest.tried][:2] == [1, 2]
    # 32 MiB of weights and as much of gradients a layer, in 1 GiB beside the context.
    assert run.largest.value is not None
    assert 10 <= run.largest.value <= 16
    assert run.largest.certain
    assert len(run.largest.tried) <= 5
    assert found.to_dict()["dry"][0]["largest"]["value"] == run.largest.value
