"""The Transformers callback in a real trainer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.diagnose import diagnose
from epochzero.run.records.model import JobProgress
from tests.run.conftest import Kept

pytest.importorskip("transformers", reason="the callback subclasses that of Transformers")
pytest.importorskip("accelerate", reason="its trainer needs accelerate")

Run = Callable[..., subprocess.CompletedProcess[bytes]]

TRAINING = """
import sys, torch
from transformers import Trainer, TrainingArguments
from epochzero.integrations import TransformersCallback

class Model(torch.nn.Module):
    steps = 0
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels=None):
        self.steps += 1
        if "fail" in sys.argv and self.steps == 7:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return {"loss": (self.layer(x)[:, 0] - labels).square().mean()}

rows = [{"x": torch.rand(4), "labels": torch.tensor(1.0)} for _ in range(32)]
arguments = TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=4, logging_steps=4, save_steps=5,
    report_to=[], use_cpu=True, disable_tqdm=True,
)
Trainer(Model(), arguments, train_dataset=rows, callbacks=[TransformersCallback()]).train()
"""


def _train(run: Run, folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    (folder / "train.py").write_text(TRAINING)
    return run(sys.executable, "train.py", *words, cwd=folder, timeout=200)


def test_training_says_where_it_is(run: Run, kept: Kept, tmp_path: Path) -> None:
    done = _train(run, tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"training goes on" not in done.stderr
    last = [record for record in kept.records if isinstance(record, JobProgress)][-1]
    assert (last.step, last.steps, last.epoch, last.epochs) == (16, 16, 2.0, 2)
    assert isinstance(last.loss, float)
    assert last.checkpoint.endswith("out/checkpoint-16")
    assert kept.events["phase"].details == {"phase": "evaluation"}


def test_the_error_of_training_is_recorded(run: Run, kept: Kept, tmp_path: Path) -> None:
    assert _train(run, tmp_path, "fail").returncode == 1
    last = [record for record in kept.records if isinstance(record, JobProgress)][-1]
    assert (last.step, last.checkpoint.rpartition("/")[2]) == (6, "checkpoint-5")
    assert kept.events["phase"].details == {"phase": "training"}
    assert diagnose(str(kept.folder / "elastic")).category == "gpu_out_of_memory"
