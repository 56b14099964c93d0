"""Who holds the memory of a GPU, by the sizes in messages of several versions of PyTorch."""

from __future__ import annotations

import pytest

from epochzero.diagnose.gpu_memory import held_by_others

BEGIN = "CUDA out of memory. Tried to allocate "
OLD = BEGIN + "{} (GPU 0; {} total capacity; {} already allocated; {} free; {})"
NEW = BEGIN + "{}. GPU 0 has a total capacity of {} of which {} is free. {}"


@pytest.mark.parametrize(
    ("message", "held"),
    [
        (OLD.format("96.00 MiB", "31.75 GiB", "783.16 MiB", "78.50 MiB", "824.00 MiB reserved in total by PyTorch"), True),
        (OLD.format("384.00 MiB", "10.76 GiB", "9.51 GiB", "201.44 MiB", "9.60 GiB reserved in total by PyTorch"), False),
        (OLD.format("20.00 GiB", "15.00 GiB", "1.00 GiB", "1.00 MiB", "1.00 GiB reserved in total by PyTorch"), False),
        # Releases before 1.5 print the part of the cache that is not allocated.
        (OLD.format("20.00 MiB", "15.90 GiB", "14.66 GiB", "7.88 MiB", "559.48 MiB cached"), False),
        (NEW.format("512.00 MiB", "39.38 GiB", "318.25 MiB", "Process 7 has 30.12 GiB memory in use. Including non-PyTorch memory, this process has 8.94 GiB memory in use."), True),
        (NEW.format("126.00 MiB", "23.65 GiB", "32.06 MiB", "Process 7 has 23.61 GiB memory in use."), False),
        ("CUDA error: out of memory", False),
    ],
)  # fmt: skip
def test_the_sizes_show_whether_others_hold_much(message: str, held: bool) -> None:
    assert held_by_others(message) is held
