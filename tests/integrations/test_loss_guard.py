"""A batch with a loss that is not finite is skipped by all ranks or by none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from epochzero.integrations import loss_guard  # noqa: E402 - needs torch
from epochzero.integrations.loss_guard import guard  # noqa: E402
from tests.torch_jobs import light_torch  # noqa: E402
from tests.waiting import PATIENCE_S  # noqa: E402

JOB = """
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import epochzero

rank, store = int(os.environ["RANK"]), "file://" + os.path.abspath("store")
# A store in a file: no port that another program may take.
dist.init_process_group("gloo", store, rank=rank, world_size=2)
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
taken = []
for step in range(6):
    batch = torch.ones(3, 2)
    if (rank, step) in ((1, 2), (0, 4)):
        batch[0] = float("nan")
    loss = model(batch).mean()
    if epochzero.guard(loss):
        loss.backward()
        optimizer.step()
        taken.append(step)
    optimizer.zero_grad()
weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
both = [torch.zeros_like(weights) for _ in range(2)]
dist.all_gather(both, weights)
assert torch.equal(*both) and torch.isfinite(weights).all()
# gloo's threads abort a Python that shuts down, now and then.
os.write(1, str(taken).encode())
os._exit(0)
"""


@pytest.fixture(autouse=True)
def _nothing_skipped_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_guard, "_skipped", 0)


def test_two_ranks_skip_the_same_batches(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(light_torch(JOB))
    ranks = [
        subprocess.Popen(
            [sys.executable, "train.py"],
            env={**os.environ, "RANK": str(rank)}, cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]  # fmt: skip
    printed = [rank.communicate(timeout=PATIENCE_S) for rank in ranks]

    assert [taken for taken, _ in printed] == ["[0, 1, 3, 5]"] * 2, printed
    assert "the loss of rank 1 is not finite" in printed[0][1] + printed[1][1]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_without_a_process_group_this_process_decides(value: float) -> None:
    assert guard(torch.tensor(1.0))
    assert not guard(torch.tensor([1.0, value]))


def test_too_many_in_a_row_end_the_training() -> None:
    bad = torch.tensor(float("nan"))
    for _ in range(2):
        assert not guard(bad, most_in_a_row=2)
    assert guard(torch.tensor(0.0), most_in_a_row=2)
    for _ in range(2):
        assert not guard(bad, most_in_a_row=2)

    with pytest.raises(FloatingPointError, match="3 batches in a row"):
        guard(bad, most_in_a_row=2)
