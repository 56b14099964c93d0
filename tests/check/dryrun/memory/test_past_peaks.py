"""What past runs took corrects the estimate: the rule, the messages it reads, and what it changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.dryrun.memory.estimate import estimate, fit
from epochzero.check.dryrun.memory.fit import smallest_gpu
from epochzero.check.dryrun.memory.history import (
    UNCORRECTED,
    OutOfMemory,
    PastPeak,
    correction,
    kind_of_job,
)
from epochzero.check.launch.model import Job
from epochzero.check.target.gpus import presets
from epochzero.check.target.model import GPU
from tests.check.dryrun.memory.traces import MIB, training

T4 = presets()["T4"]
JOB = Job(
    argv=("--batch", "8", "--amp"), script=Path("/job/train.py"), module="", folder=Path("/job")
)
KIND = "train.py --amp --batch"
GIB = 1 << 30


def past(*peaks: int, wanted: int = 0) -> list[PastPeak]:
    return [PastPeak(KIND, T4.model, 1000 * MIB, peak * MIB, wanted * MIB) for peak in peaks]


def test_a_job_is_known_by_its_script_and_the_names_of_its_options() -> None:
    assert kind_of_job(JOB) == KIND
    hydra = Job(argv=("model.depth=4", "lr=1e-3"), module="train", script=None, folder=Path())
    assert kind_of_job(hydra) == "train lr model.depth"


def test_the_median_of_the_runs_that_ended_well_scales_and_the_others_widen() -> None:
    found = correction(past(1000, 1100, 1040), JOB, T4.model)
    assert (found.low, found.likely, found.high, found.runs) == (1.0, 1.04, 1.1, 3)


def test_what_failed_for_lack_of_memory_raises_the_estimate_when_it_took_more() -> None:
    found = correction([*past(1000), *past(900, wanted=300)], JOB, T4.model)
    assert (found.low, found.likely, found.high) == (1.0, 1.2, 1.2)
    less = correction(past(500, wanted=100), JOB, T4.model)
    assert (less.low, less.likely, less.high) == (1.0, 1.0, 1.0)


def test_runs_of_other_jobs_and_on_other_gpus_do_not_count() -> None:
    other = Job(argv=("--batch", "8"), script=Path("/job/train.py"), module="", folder=Path("/job"))
    assert correction(past(2000), other, T4.model) == UNCORRECTED
    assert correction(past(2000), JOB, "another GPU") == UNCORRECTED
    assert correction([PastPeak(KIND, T4.model, 0, 5)], JOB, T4.model) == UNCORRECTED


def test_the_range_and_the_answer_are_those_of_the_past() -> None:
    trace = training(batch=64)
    plain = estimate(trace, T4)
    found = estimate(trace, T4, corrected=correction(past(1500, 2000), JOB, T4.model))
    assert found.allocated.likely == pytest.approx(1.75 * plain.allocated.likely, abs=1)
    assert found.allocated.low == pytest.approx(1.5 * plain.allocated.low, abs=2)
    assert found.allocated.high == pytest.approx(2 * plain.allocated.high, abs=2)
    assert any("past runs of the job: 2" in text for text in found.assumptions)


def test_what_was_out_of_memory_does_not_surely_fit_again() -> None:
    trace = training(batch=64)
    # The context and the driver take up to 1.5 GiB of it.
    gpu = GPU("a GPU", int(estimate(trace, T4).reserved.likely * 1.1) + 1500 * MIB, (8, 0))
    failed = correction(past(1200, wanted=300), JOB, T4.model)
    assert fit(trace, gpu).answer == "fits"
    assert fit(trace, gpu, corrected=failed).answer == "may not fit"
    alone, raised = smallest_gpu(trace, T4), smallest_gpu(trace, T4, corrected=failed)
    assert alone is not None
    assert raised is None or raised.memory_bytes >= alone.memory_bytes


NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total "
    "capacity of 14.56 GiB of which 3.88 MiB is free. Including non-PyTorch memory, this process has "
    "14.55 GiB memory in use. Of the allocated memory 14.00 GiB is allocated by PyTorch, and 64.00 MiB "
    "is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting"
)
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 14.76 GiB total capacity; "
    "12.00 GiB already allocated; 1.20 GiB free; 13.00 GiB reserved in total by PyTorch)"
)


def test_messages_of_torch_are_read() -> None:
    assert OutOfMemory.read(NEW) == OutOfMemory(20 * MIB, 14 * GIB, 14 * GIB + 64 * MIB)
    assert OutOfMemory.read(OLD) == OutOfMemory(5 * GIB // 2, 12 * GIB, 13 * GIB)
    assert OutOfMemory.read("CUDA out of memory.") is None
    assert OutOfMemory.read("Tried to allocate 2.00 GiB.") is None


@given(st.text())
def test_any_text_is_read_or_is_none(text: str) -> None:
    found = OutOfMemory.read(text)
    assert found is None or found.wanted >= 0


@given(st.lists(st.tuples(st.integers(1, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))))
def test_a_correction_is_a_range(peaks: list[tuple[int, int, int]]) -> None:
    history = [PastPeak(KIND, T4.model, *peak) for peak in peaks]
    found = correction(history, JOB, T4.model)
    assert 0 <= found.low <= found.likely <= found.high
