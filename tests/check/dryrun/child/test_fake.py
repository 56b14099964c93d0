"""Programs for a GPU run on a build for the CPU, and fail as they would on the GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from programs import FAIL, RUN  # noqa: E402

sys.path.remove(str(HERE))


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def ended(run_preloaded: Run) -> dict[str, tuple[int, str]]:
    process = run_preloaded(str(HERE / "runner.py"))
    assert process.returncode == 0, process.stderr[-2000:]
    rows = [json.loads(line) for line in process.stdout.splitlines()]
    return {row["name"]: (row["status"], row["text"]) for row in rows}


@pytest.mark.parametrize("name", RUN)
def test_an_idiom_runs_to_its_end(name: str, ended: dict[str, tuple[int, str]]) -> None:
    status, text = ended[name]
    assert status == 0
    assert text.splitlines()[-1:] == ["ended"], text


@pytest.mark.parametrize("name", FAIL)
def test_a_mistake_fails_as_on_the_gpu(name: str, ended: dict[str, tuple[int, str]]) -> None:
    status, text = ended[name]
    assert status == 0
    assert FAIL[name][1] in text


RESTORED = """
import torch
from epochzero.check.dryrun.child import fake
owners = (torch, torch.cuda, torch.Tensor, torch.nn.Module, torch.nn.functional, torch.distributed,
          torch.nn.Parameter, torch.optim.Optimizer, torch.UntypedStorage, torch.autograd)
before = [dict(vars(owner)) for owner in owners]
gpu = {"model": "NVIDIA A100", "memory_bytes": 80 << 30, "capability": [8, 0]}
with fake.enter([gpu], {"size": 1, "rank": 0, "local_size": 1}):
    assert torch.cuda.is_available()
    assert callable(torch._C._cuda_getCurrentRawStream)  # bitsandbytes takes it when it is imported
    torch.nn.Linear(2, 2).cuda()
assert not torch.cuda.is_available()
for owner, old in zip(owners, before):
    assert set(old) <= set(vars(owner))
    ours = [name for name, value in vars(owner).items()
            if "epochzero" in str(getattr(value, "__module__", ""))]
    assert not ours, (owner, ours)
assert type(torch.nn.Linear(2, 2).weight) is torch.nn.Parameter
"""


def test_torch_is_as_before_in_the_end(run_preloaded: Run, tmp_path: Path) -> None:
    (tmp_path / "restored.py").write_text(RESTORED)
    process = run_preloaded(str(tmp_path / "restored.py"))
    assert process.returncode == 0, process.stderr[-2000:]


def test_torch_saves_by_torch_where_safetensors_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="its function stands beside torch's")
    torch = pytest.importorskip("torch")
    from epochzero.check.dryrun.child.fake.saved import by_shape

    with by_shape(lambda path, size: None):
        torch.save({"model": {"layers": 3}}, tmp_path / "last.pt")
        assert torch.load(tmp_path / "last.pt") == {"model": {"layers": 3}}
