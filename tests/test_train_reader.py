"""``bench/train_reader.py``: a training that is interrupted resumes from its checkpoint."""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("torch")

SCRIPT = Path(__file__).resolve().parents[1] / "bench" / "train_reader.py"
WORDS = [
    "loss",
    "rank",
    "batch",
    "file",
    "device",
    "shape",
    "value",
    "model",
    "layer",
    "optimizer",
    "tensor",
    "epoch",
]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_reader", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_reader"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pack(script: ModuleType, tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    for repository in ("a+one", "b+two"):
        with gzip.open(tmp_path / f"{repository}.jsonl.gz", "wt") as file:
            for number in range(310):
                a, b, c = draw.choice(WORDS, 3, replace=False)
                unit = [f"src/{a}.py", f"{b}_{c}", f"def {b}_{c}():\n    return {a}({number})"]
                row = {"q": f"Fix {a} {b}\n{repository} {number}", "u": [unit]}
                file.write(json.dumps(row) + "\n")
    script.pack_pairs(tmp_path, tmp_path / "pack.xz")
    return tmp_path / "pack.xz"


def test_an_interrupted_training_resumes(
    script: ModuleType,
    pack: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = argparse.Namespace(
        pack=pack, out=pack.parent / "out", seconds=3600.0, save_every=0.0, width=16, dimensions=8,
        query_layers=1, document_layers=0, batch=16, groups=1, rate=1e-3, dropout=0.1,
    )  # fmt: skip
    validations = 0

    def interrupt(*arguments: object) -> str:
        nonlocal validations
        validations += 1
        if validations == 3:
            raise KeyboardInterrupt
        return "quality"

    with monkeypatch.context() as patch:
        patch.setattr(script, "validated", interrupt)
        with pytest.raises(KeyboardInterrupt):
            script.train(options)
    assert not (options.out / "weights.npz").exists()
    # The time is used up: the stored steps are all there are.
    options.seconds = 0.0
    capsys.readouterr()
    script.train(options)
    assert "; step 2\n" in (out := capsys.readouterr().out)
    assert "2 steps, MRR " in out
    stored = np.load(options.out / "weights.npz")
    assert stored["embedding"].dtype == np.int8
    assert not (options.out / "checkpoint.pt").exists()


def test_words_are_split_into_known_pieces(script: ModuleType) -> None:
    vocabulary = script.Vocabulary(["re", "##load", "load", "##er"])
    assert vocabulary["reloader"] == (3, 4, 6)
    assert vocabulary["zebra"] == (script.UNKNOWN,)
