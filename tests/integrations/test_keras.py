"""The Keras callback in a real ``fit``, on the backend that is there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from epochzero.diagnose import diagnose
from epochzero.run.records.model import JobProgress
from tests.run.conftest import Kept

if find_spec("keras") is None:
    pytest.skip("the callback subclasses that of Keras", allow_module_level=True)

Run = Callable[..., subprocess.CompletedProcess[bytes]]

BACKENDS = [name for name in ("torch", "tensorflow", "jax") if find_spec(name)]
TRAINING = """
import sys, keras, numpy
from epochzero.integrations import KerasCallback

class Failing(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if "fail" in sys.argv and epoch == 2:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(
    numpy.ones((32, 4), "float32"), numpy.ones((32, 1), "float32"), batch_size=4, initial_epoch=1,
    epochs=3, verbose=0, callbacks=[KerasCallback(), Failing()],
)
"""


def _train(run: Run, folder: Path, backend: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    (folder / "train.py").write_text(TRAINING)
    environment = {**os.environ, "KERAS_BACKEND": backend}
    return run(sys.executable, "train.py", *words, cwd=folder, env=environment, timeout=200)


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_says_where_it_is(run: Run, kept: Kept, tmp_path: Path, backend: str) -> None:
    done = _train(run, tmp_path, backend)
    assert done.returncode == 0, done.stderr
    assert b"training goes on" not in done.stderr
    last = [record for record in kept.records if isinstance(record, JobProgress)][-1]
    assert (last.step, last.steps, last.epoch, last.epochs) == (24, 24, 3.0, 3)
    assert isinstance(last.loss, float)
    assert kept.events["phase"].details == {"phase": "evaluation"}


def test_the_error_of_training_is_recorded(run: Run, kept: Kept, tmp_path: Path) -> None:
    assert _train(run, tmp_path, BACKENDS[0], "fail").returncode == 1
    last = [record for record in kept.records if isinstance(record, JobProgress)][-1]
    assert (last.step, last.epoch) == (16, 2.0)
    assert diagnose(str(kept.folder / "elastic")).category == "gpu_out_of_memory"
