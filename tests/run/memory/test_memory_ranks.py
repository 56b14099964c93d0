"""Two ranks stay together when one of them runs out of memory, wherever it does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torch_jobs import light_torch
from tests.waiting import PATIENCE_S

TRAINING = """
import json, os, sys
import torch
from torch import nn, distributed
from torch.nn.parallel import DistributedDataParallel
import epochzero

torch.set_num_threads(1)
rank, out, where = int(sys.argv[1]), sys.argv[2], sys.argv[3]
distributed.init_process_group("gloo", init_method=f"file://{out}/meet", rank=rank, world_size=2)
torch.manual_seed(0)
model = DistributedDataParallel(
    nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)), bucket_cap_mb=0.0005
)
optimizer = torch.optim.AdamW(model.parameters(), 0.01)
failures = {"forward": 3, "backward": 3, "none": 0}[where] if rank == 1 else 0

def out_of_memory(gradient=None):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

def loss_of(batch):
    global failures
    fails = failures and len(batch) > 4
    if fails and where == "forward":
        failures -= 1
        out_of_memory()
    hidden = model(batch)
    if fails and where == "backward":
        failures -= 1
        hidden.register_hook(out_of_memory)
    return hidden.square().mean()

if where == "none":
    def step(batch):
        loss = loss_of(batch)
        loss.backward()
        return loss
else:
    step = epochzero.memory.fit(
        loss_of, model=model, optimizer=optimizer, remember=f"{out}/survive.json"
    )
generator = torch.Generator().manual_seed(7 + rank)
for index in range(4):
    batch = torch.randn(16 + rank, 8, generator=generator)
    optimizer.zero_grad()
    if index == 2:
        with model.no_sync():
            step(batch)
    step(batch)
    optimizer.step()
weights = [value.tolist() for value in model.state_dict().values()]
parts = 0 if where == "none" else step.plan.parts
with open(f"{out}/{where}{rank}.json", "w") as file:
    json.dump({"parts": parts, "weights": weights}, file)
# gloo's threads abort a Python that shuts down, now and then, with plain DDP too
os._exit(0)
"""


def _train(folder: Path, where: str) -> list[dict[str, object]]:
    folder.mkdir()
    (folder / "train.py").write_text(light_torch(TRAINING))
    ranks = [
        subprocess.Popen([sys.executable, folder / "train.py", str(rank), str(folder), where])
        for rank in range(2)
    ]
    assert [rank.wait(PATIENCE_S) for rank in ranks] == [0, 0]
    return [json.loads((folder / f"{where}{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """What the ranks have learned where none of them runs out of memory."""
    return _train(tmp_path_factory.mktemp("ranks") / "expected", "none")


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_all_ranks_take_the_smallest_split_and_train_as_without(
    tmp_path: Path, expected: list[dict[str, object]], where: str
) -> None:
    found = _train(tmp_path / "found", where)
    assert found[0]["parts"] == found[1]["parts"] == 4 * 2
    assert found[0]["weights"] == found[1]["weights"]
    for ours, theirs in zip(found[0]["weights"], expected[0]["weights"], strict=True):
        for one, other in zip(_flat(ours), _flat(theirs), strict=True):
            assert one == pytest.approx(other, rel=1e-4, abs=1e-6)


def _flat(values: object) -> list[float]:
    if isinstance(values, list):
        return [number for value in values for number in _flat(value)]
    assert isinstance(values, float)
    return [values]
