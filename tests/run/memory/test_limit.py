"""A simulated limit counts what lives, and ends it in torch's words."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import epochzero
from epochzero.diagnose import diagnose
from epochzero.errors import InputError


def test_what_lives_is_counted_and_what_is_gone_is_not() -> None:
    with epochzero.memory.simulated_limit(10_000) as limit:
        x = torch.zeros(1000)
        assert limit.now == 4000
        y = x.view(10, 100)[2:]
        assert limit.now == 4000
        del x, y
        assert limit.now == 0
        for _ in range(10):
            torch.zeros(2000)
    assert limit.peak == 8000


def test_too_much_raises_what_torch_raises_and_nothing_is_held() -> None:
    with epochzero.memory.simulated_limit(1 << 20) as limit:
        kept = torch.zeros(1000)
        with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 4\.00 MiB\. GPU 0"):
            torch.zeros(1 << 20)
        assert limit.now == kept.nbytes
        torch.zeros(1000)


def test_it_is_diagnosed_as_on_a_gpu(tmp_path: Path) -> None:
    with pytest.raises(torch.OutOfMemoryError) as caught, epochzero.memory.simulated_limit(100):
        torch.zeros(1 << 20)
    text = "Traceback (most recent call last):\n"
    text += f'  File "train.py", line 3, in <module>\ntorch.OutOfMemoryError: {caught.value}\n'
    (tmp_path / "log").write_text(text)
    assert diagnose(tmp_path / "log").category == "gpu_out_of_memory"


def test_a_limit_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="must be positive"):
        epochzero.memory.simulated_limit(0)
