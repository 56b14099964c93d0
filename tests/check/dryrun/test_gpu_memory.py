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


def run(folder: Path, target: Target, *arguments: str) -> Checked:
    (folder / "train.py").write_text(SCRIPT)
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


RAGGED = """\
import time
import torch
from torch.utils.data import DataLoader

class Words(torch.utils.data.Dataset):
    def __len__(self):
        return 1200
    def __getitem__(self, number):
        return torch.ones(4096 if number == 250 else 8)

def padded(samples):
    return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)

model = torch.nn.Linear(1, 256).cuda()
optimizer = torch.optim.Adam(model.parameters())
for batch in DataLoader(Words(), batch_size=4, collate_fn=padded):
    loss = model(batch.cuda().unsqueeze(-1)).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.05)
"""


def test_the_memory_is_that_of_the_largest_batch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RAGGED)
    found = check(
        [sys.executable, "train.py"],
        with_gpu(8192),
        folder=tmp_path,
        environment=dict(os.environ),
        select=["dry-run-failed", "dry-run-memory"],
        dry=Limits(seconds=60),
    )
    (dry,) = found.dry
    assert dry.memory is not None
    assert dry.memory.allocated.likely > 4 * 4096 * 256 * 4
    assert any("batch 63 is the largest of 300" in one.what for one in dry.assumptions)
