"""The Lightning callback in a real trainer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.diagnose import diagnose
from epochzero.run.records.model import JobProgress
from tests.run.conftest import Kept

pytest.importorskip("lightning", reason="the callback subclasses Lightning's")

Run = Callable[..., subprocess.CompletedProcess[bytes]]

TRAINING = """
import sys, torch
import {package} as pl
from torch.utils.data import DataLoader, TensorDataset
from epochzero.integrations import LightningCallback

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        if "fail" in sys.argv and self.current_epoch == 1:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return self.layer(batch[0]).mean()
    def test_step(self, batch, index):
        pass
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

loader = DataLoader(TensorDataset(torch.rand(32, 4)), batch_size=4)
trainer = pl.Trainer(
    max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False, log_every_n_steps=2,
    callbacks=[LightningCallback()],
)
trainer.fit(Model(), loader)
trainer.test(Model(), loader, verbose=False)
"""


def _train(run: Run, folder: Path, package: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    (folder / "train.py").write_text(TRAINING.format(package=package))
    return run(sys.executable, "train.py", *words, cwd=folder, timeout=200)


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_training_says_where_it_is(run: Run, kept: Kept, tmp_path: Path, package: str) -> None:
    done = _train(run, tmp_path, package)
    assert done.returncode == 0, done.stderr
    assert b"training goes on" not in done.stderr
    last = [record for record in kept.records if isinstance(record, JobProgress)][-1]
    assert (last.step, last.steps, last.epoch, last.epochs) == (24, 24, 3.0, 3)
    assert isinstance(last.loss, float)
    assert last.checkpoint.endswith("epoch=2-step=24.ckpt")
    assert Path(last.checkpoint).is_file()
    assert kept.events["phase"].details == {"phase": "evaluation"}


def test_the_error_of_training_is_recorded(run: Run, kept: Kept, tmp_path: Path) -> None:
    done = _train(run, tmp_path, "lightning.pytorch", "fail")
    assert done.returncode == 1
    last = [record for record in kept.records if isinstance(record, JobProgress)][-1]
    assert (last.step, last.epoch) == (8, 1.0)
    assert last.checkpoint.endswith("epoch=0-step=8.ckpt")
    assert diagnose(str(kept.folder / "elastic")).category == "gpu_out_of_memory"
