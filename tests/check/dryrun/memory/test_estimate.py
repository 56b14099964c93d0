"""What a trace says of a GPU: peaks, what holds them, fit, advice, and the inverse questions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check.dryrun.memory.advice import advise
from epochzero.check.dryrun.memory.estimate import estimate, fit
from epochzero.check.dryrun.memory.findings import finding
from epochzero.check.dryrun.memory.fit import largest, smallest_gpu
from epochzero.check.dryrun.memory.options import AllocatorOptions
from epochzero.check.dryrun.memory.picture import picture
from epochzero.check.dryrun.memory.replay import replay
from epochzero.check.dryrun.memory.trace import KINDS, Alloc, Free, Mark, Trace, read
from epochzero.check.findings import SourceLocation
from epochzero.check.target.gpus import presets
from epochzero.check.target.model import GPU
from epochzero.errors import InputError
from tests.check.dryrun.memory.traces import MIB, training

BENCH = Path(__file__).parents[4] / "bench" / "memory"
T4 = presets()["T4"]
SMALL = GPU("a small GPU", 1500 * MIB, (8, 0))
JOB = SourceLocation("<command>", code="python train.py")


def test_the_peak_and_what_holds_it() -> None:
    memory = estimate(training(batch=1), T4)
    # In the optimizer's second step: weights, gradients, two states and a list, 32 MiB each; two
    # inputs of 1 MiB; two workspaces.
    assert memory.by_kind == {
        "optimizer": 64 * MIB,
        "parameter": 32 * MIB,
        "gradient": 32 * MIB,
        "temporary": 32 * MIB,
        "workspace": 2 * 8519680,
        "input": 2 * MIB,
    }
    assert memory.moment == "in the optimizer's step, step 2"
    assert memory.allocated.low < memory.allocated.likely < memory.allocated.high
    assert memory.allocated.likely == sum(memory.by_kind.values())
    assert memory.reserved.likely >= memory.allocated.likely
    assert memory.holders[0].kind == "optimizer"
    assert memory.holders[0].site.line == 9


def test_like_layers_are_one_holder() -> None:
    memory = estimate(training(batch=64), T4)
    holder = memory.holders[0]
    assert (holder.site.layer, holder.kind, holder.count) == ("h.*.mlp", "activation", 4)
    assert memory.moment == "in backward, step 2"


def test_what_was_assumed_is_told() -> None:
    one = estimate(training(steps=1), T4, {"PYTORCH_ALLOC_CONF": "expandable_segments:True"})
    assert any("only one step ran" in text for text in one.assumptions)
    assert any("expandable" in text for text in one.assumptions)
    none = estimate(Trace((Mark("backward"),)), T4, {"PYTORCH_ALLOC_CONF": "pinned_x:1"}, 8)
    assert any("no optimizer step ran" in text for text in none.assumptions)
    assert any("pinned_x" in text for text in none.assumptions)
    assert any("8 processes" in text for text in none.assumptions)


def test_hopper_has_larger_workspaces() -> None:
    assert estimate(training(), presets()["H100"]).by_kind["workspace"] == 64 * MIB


def test_emptying_the_cache_gives_back_what_is_reserved() -> None:
    trace = training(batch=64, steps=1)
    grown = (Alloc(10_000, 700 * MIB, 0),)
    usual = replay(replace(trace, events=trace.events + grown), AllocatorOptions(), 0)
    emptied = replace(trace, events=(*trace.events, Mark("empty cache"), *grown))
    assert replay(emptied, AllocatorOptions(), 0).reserved < usual.reserved


@pytest.mark.parametrize(
    ("batch", "answer"), [(4, "fits"), (34, "may not fit"), (120, "does not fit")]
)
def test_whether_it_fits(batch: int, answer: str) -> None:
    found = fit(training(batch=batch), SMALL)
    assert found.answer == answer
    if answer == "fits":
        assert found.failing is None
    else:
        assert found.failing is not None
        assert (found.failing.path, found.failing.line) == ("train.py", 7)
        assert found.wanted > 0


def test_only_what_surely_does_not_fit_is_an_error() -> None:
    assert finding(estimate(training(), SMALL), JOB) is None
    may = finding(estimate(training(batch=34), SMALL), JOB)
    assert may is not None
    assert may.severity == "warning"
    trace = training(batch=120)
    surely = finding(estimate(trace, SMALL), JOB, advise(trace, SMALL))
    assert surely is not None
    assert (surely.severity, surely.category) == ("error", "gpu_out_of_memory")
    assert surely.place == JOB
    assert "CUDA out of memory. Tried to allocate" in surely.consequence
    assert "Half the batch" in surely.fix


def test_advice_is_what_a_replay_of_the_changed_job_says() -> None:
    trace = training(batch=64)
    peak = estimate(trace, T4).allocated.likely
    saved = {one.change.name: one.allocated for one in advise(trace, T4)}
    half = estimate(training(batch=32), T4).allocated.likely
    # Gradients of the first half are there while the second is computed.
    assert saved["half the batch, accumulated twice"] == peak - half - 3 * 8 * MIB
    assert saved["gradient checkpointing"] == 3 * (3 + 1) * 64 * MIB
    assert "8-bit optimizer states" in saved


def test_advice_where_the_optimizer_is_the_peak() -> None:
    saved = {one.change.name: one.allocated for one in advise(training(batch=1), T4)}
    # Less than the list of 32 MiB: the end of backward is the peak then.
    assert 24 * MIB < saved["optimizer without lists"] < 32 * MIB
    assert "gradient checkpointing" not in saved


def test_the_smallest_gpu_that_is_enough() -> None:
    found = smallest_gpu(training(batch=256), presets()["A100"])
    assert found is not None
    assert fit(training(batch=256), found).answer == "fits"
    assert found.memory_bytes <= presets()["A10"].memory_bytes
    assert found.capability is not None
    assert found.capability >= (8, 0)
    assert smallest_gpu(training(parameter=1 << 40), presets()["A100"]) is None


@pytest.mark.parametrize(("start", "step"), [(1, 1), (100, 1), (16, 8)])
def test_the_largest_batch_that_fits(start: int, step: int) -> None:
    found = largest("batch", lambda batch: training(batch=batch), start, SMALL, step=step)
    assert found.certain
    assert found.value is not None
    assert fit(training(batch=found.value), SMALL).answer == "fits"
    assert fit(training(batch=found.value + step), SMALL).answer != "fits"
    assert found.value % step == 0
    assert len(found.tried) <= 8


def test_few_values_are_tried_where_the_peak_is_no_line() -> None:
    # Blocks of 20 MiB are what the GPU gives: the peak allocated says little of what fits.
    sparse = GPU("a GPU", 1500 * MIB, (8, 0))
    found = largest("batch", lambda batch: training(batch=batch, parameter=MIB), 3, sparse)
    assert found.certain
    assert found.option == "batch"
    assert fit(training(batch=(found.value or 0) + 1, parameter=MIB), sparse).answer != "fits"


def test_nothing_fits_where_the_smallest_value_does_not() -> None:
    huge = training(parameter=1 << 40)
    found = largest("batch", lambda batch: huge, 4, SMALL)
    assert found.value is None
    assert largest("batch", lambda batch: None, 4, SMALL).value is None


def test_the_picture_is_well_formed_and_shows_every_kind() -> None:
    text = picture(estimate(training(batch=64), SMALL), title="<train> & co")
    tree = ElementTree.fromstring(text)
    shown = " ".join(node.text or "" for node in tree.iter())
    for word in ("<train> & co", "activation", "optimizer", "backward", "a small GPU", "peak"):
        assert word in shown
    assert ElementTree.fromstring(picture(estimate(Trace(()), SMALL))) is not None


# -- Traces as they are written ----------------------------------------------------------------


def _lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_a_trace_is_read(tmp_path: Path) -> None:
    path = _lines(
        tmp_path / "trace",
        {"a": 0, "n": 512, "w": 0},
        {"m": "step 1"},
        {"f": 0},
        {"kinds": {"0": "parameter", "1": "nonsense"}},
        {"where": [["train.py", 3, "fc"]]},
    )
    trace = read(path)
    assert trace.events == (Alloc(0, 512, 0), Mark("step 1"), Free(0))
    assert trace.kind(0) == "parameter"
    assert trace.kind(1) == "temporary"
    assert trace.sites[0].layer == "fc"


@pytest.mark.parametrize(
    "record", [{"a": 0}, {"a": 0, "n": -1, "w": 0}, {"a": 0, "n": 1 << 60, "w": 0}, [1], "x", {}]
)
def test_what_is_no_trace_is_refused(tmp_path: Path, record: object) -> None:
    with pytest.raises(InputError):
        read(_lines(tmp_path / "trace", record))


STORAGES = st.integers(0, 20)
EVENTS = st.lists(
    st.one_of(
        st.builds(Alloc, STORAGES, st.integers(0, 1 << 40), st.integers(-3, 3)),
        st.builds(Free, STORAGES),
        st.builds(Mark, st.sampled_from(["backward", "optimizer", "step 1", "cublas", "<x>"])),
    ),
    max_size=40,
)


@given(EVENTS, st.dictionaries(STORAGES, st.sampled_from(KINDS)))
def test_any_trace_is_answered(events: list[Alloc | Free | Mark], kinds: dict[int, str]) -> None:
    trace = Trace(tuple(events), kinds)
    memory = estimate(trace, SMALL)
    assert memory.allocated.low <= memory.allocated.likely <= memory.reserved.likely
    advise(trace, SMALL)
    ElementTree.fromstring(picture(memory))


def test_a_program_is_traced_and_estimated(
    tmp_path: Path, run_preloaded: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, bias=False) for _ in range(4)))\n"
        "model.cuda()\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "x = torch.randn(64, 1024, device='cuda')\n"
        "for _ in range(2):\n"
        "    optimizer.zero_grad()\n"
        "    model(x).sum().backward()\n"
        "    optimizer.step()\n",
        encoding="utf-8",
    )
    gpu = {"model": T4.model, "memory_bytes": T4.memory_bytes, "capability": T4.capability}
    spec = {"gpu": gpu, "processes": 1, "trace": str(tmp_path / "trace")}
    done = run_preloaded(str(BENCH / "trace.py"), json.dumps(spec), str(script))
    assert done.returncode == 0, done.stderr
    memory = estimate(read(tmp_path / "trace"), T4)
    weights = 4 * 1024 * 1024 * 4
    assert memory.moment.startswith("in the optimizer's step")
    assert memory.by_kind["parameter"] == memory.by_kind["gradient"] == weights
    assert memory.by_kind["optimizer"] == 2 * weights
    assert memory.by_kind["workspace"] == 2 * 8519680
