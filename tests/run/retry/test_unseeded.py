"""Numbers that nothing seeds, drawn where a job failed: its program is read for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from epochzero.diagnose import Diagnosis, diagnose
from epochzero.run.records.model import Start
from epochzero.run.retry import unseeded
from tests.run.conftest import Kept

Run = Callable[..., subprocess.CompletedProcess[bytes]]
STARTED = Start("j", 1, "n", ("python", "train.py"), "/", "node1", "u", 1, 0.0)
INDEX = "IndexError: list index out of range"
NAN = "ValueError: loss is nan"


def looked(folder: Path, program: str, error: str = INDEX, function: str = "<module>") -> str:
    """What is said of a program that has failed in the line marked ``# here``."""
    (folder / "train.py").write_text(program)
    line = next(n for n, text in enumerate(program.splitlines(), 1) if "# here" in text)
    return unseeded(diagnosed(folder, line, error, function), replace(STARTED, folder=str(folder)))


def diagnosed(folder: Path, line: int, error: str, function: str) -> Diagnosis:
    log = folder / "job.log"
    log.write_text(
        f'Traceback (most recent call last):\n  File "{folder}/train.py", line {line}, in {function}\n'
        f"    step()\n{error}\n"
    )
    return diagnose(log)


CROP = (
    "import random\n{}"
    "def crop(rows):\n    top = random.randrange(9)\n    return rows[top]  # here\n"
    "for step in range(100):\n    crop([1] * 5)\n"
)
NUMPY = (
    "import numpy as np\nrng = np.random.default_rng({})\nrows = [1] * 5\n"
    "for step in range(100):\n    row = rng.integers(9)\n    print(rows[row])  # here\n"
)
NOISE = (
    "import torch\n{}\ndef noisy(x):\n    return (x + torch.randn(4)).log()\n"
    "for step in range(100):\n    loss = noisy(torch.ones(4)).mean()\n"
    "    if loss.isnan():\n        raise ValueError('loss is nan')  # here\n"
)


def test_the_draw_is_named(tmp_path: Path) -> None:
    said = looked(tmp_path, CROP.format(""), function="crop")
    assert said == (
        "train.py:3 uses random.randrange without a seed: another run draws different numbers."
    )
    assert "train.py:5 uses numpy.random.default_rng().integers" in looked(
        tmp_path, NUMPY.format("")
    )
    assert "train.py:4 uses torch.randn" in looked(tmp_path, NOISE.format(""), NAN)


@pytest.mark.parametrize("seed", ["random.seed(3)", "from lightning import seed_everything\nseed_everything(1)"])  # fmt: skip
def test_what_is_seeded_comes_again(tmp_path: Path, seed: str) -> None:
    assert looked(tmp_path, CROP.format(seed + "\n"), function="crop") == ""
    assert looked(tmp_path, NUMPY.format("7")) == ""
    assert looked(tmp_path, NOISE.format("torch.manual_seed(0)"), NAN) == ""


@pytest.mark.parametrize("seed", ["random.seed()", "import torch\ntorch.manual_seed(0)"])
def test_an_empty_seed_or_that_of_another_generator_is_none(tmp_path: Path, seed: str) -> None:
    assert looked(tmp_path, CROP.format(seed + "\n"), function="crop")


def test_what_was_drawn_before_the_loop_does_not_count(tmp_path: Path) -> None:
    assert not looked(
        tmp_path,
        "import torch\nx = torch.randn(100)\nlabels = list(range(9))\n"
        "for step in range(100):\n    print(x[step], labels[step])  # here\n",
    )


def test_what_is_drawn_after_the_loop_does_not_count(tmp_path: Path) -> None:
    loop = "for step in range(100):\n    print([1][step])  # here\n"
    assert not looked(tmp_path, f"import random\n{loop}x = random.random()\n")


def test_only_failures_of_values_are_looked_at(tmp_path: Path) -> None:
    for error in ("KeyError: 'lr'", "ModuleNotFoundError: No module named 'apex'"):
        assert looked(tmp_path, CROP.format(""), error, "crop") == ""


def test_a_program_that_is_gone_or_another_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    for line in (1, 99):
        found = diagnosed(tmp_path, line, INDEX, "crop")
        assert unseeded(found, replace(STARTED, folder=str(tmp_path))) == ""


def test_a_run_says_so_and_starts_again(
    run: Run, kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(
        "import random\nrows = [1]\nfor _ in range(9):\n    print(rows[1 + random.randrange(9)])\n"
    )
    done = run("--", sys.executable, "train.py").stderr.decode()
    assert "By chance   train.py:4 uses random.randrange" in done
    assert "a retry draws others. A retry has a 43% chance to succeed:" in " ".join(done.split())
    assert kept.events["unseeded"].text.startswith("train.py:4 uses")
