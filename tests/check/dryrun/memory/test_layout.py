"""Memory of a rank by layout: the figures of the papers, on traces made by hand and on a job that is run dry."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check import CheckResult, Limits, check
from epochzero.check.dryrun.memory.layout import Layout, LayoutMemory, divided
from epochzero.check.dryrun.memory.resize import resized
from epochzero.check.dryrun.memory.trace import Alloc, Trace, trace_of
from epochzero.check.dryrun.records import AllocationRecord, Record
from epochzero.check.target.gpus import presets
from epochzero.errors import InputError
from tests.check.dryrun.memory.traces import training

A100 = presets()["A100"]
HEADS, SEQUENCE, WIDTH, BATCH = 4, 128, 128, 8
SIZES = {"a": HEADS, "s": SEQUENCE, "h": WIDTH, "b": BATCH, "v": 256}
TRAIN = Path(__file__).with_name("gpt.py")


def memory(trace: Trace, layout: str) -> LayoutMemory:
    found = divided(trace, Layout.read(layout), A100, {})
    assert isinstance(found, LayoutMemory), found
    return found


def mixed_precision(parameters: int) -> Trace:
    """Adam with 2 bytes of parameter and of gradient and 12 bytes of states for each value."""
    trace = training(batch=0, blocks=15, parameter=2 * parameters // 15)
    return resized(trace, lambda alloc, kind: alloc.size * (3 if kind == "optimizer" else 1))


@pytest.mark.parametrize("ranks", [4, 64, 1024])
@pytest.mark.parametrize("billions", [7.5, 128])
def test_model_states_are_those_of_the_zero_paper(billions: float, ranks: int) -> None:
    # Table 1 and figure 1: 4 + 12/N, 2 + 14/N and 16/N bytes for each parameter.
    trace = mixed_precision(int(billions * 10**9))
    table = {"zero1": 4 + 12 / ranks, "zero2": 2 + 14 / ranks, "zero3": 16 / ranks, "data": 16}
    for name, size in table.items():
        found = memory(trace, f"{name}={ranks}").states
        assert found == pytest.approx(size * billions * 10**9, rel=1e-6), name
    assert memory(trace, "fsdp=64").states / 1e9 == pytest.approx(16 / 64 * billions, abs=0.05)


def test_a_rank_of_eight_has_one_expert_of_each_layer() -> None:
    # Jiang et al., 2024, "Mixtral of Experts": 46.7e9 parameters, of which a token uses 12.9e9 with 2 of 8 experts.
    experts = (46.7e9 - 12.9e9) * 8 / 6
    sizes = {"h.0.attention.weight": 46.7e9 - experts, "h.1.experts.w1": experts}
    trace, seen = training(batch=0, blocks=2), Counter[str]()
    for alloc in (event for event in trace.events if isinstance(event, Alloc)):
        kind = trace.kind(alloc.storage)
        trace.names[alloc.storage] = list(sizes)[seen[kind] % 2]
        seen[kind] += 1
    trace = resized(
        trace, lambda alloc, kind: int(sizes[trace.names[alloc.storage]]) if alloc.size else 0
    )
    copies = 4  # parameter, gradient and two states
    assert memory(trace, "data=1").states == pytest.approx(copies * 46.7e9)
    found = memory(trace, "expert=8")
    assert found.states == pytest.approx(copies * (46.7e9 - experts * 7 / 8), rel=1e-6)
    assert found.gpus == 8
    dense = resized(training(), lambda alloc, _: alloc.size)
    assert "no layer of the model has experts" in str(
        divided(dense, Layout.read("expert=8"), A100, {})
    )


@pytest.fixture
def traces(preloaded: None) -> dict[int, Trace]:
    """The traces of a GPT with so many layers, in half precision."""
    pytest.importorskip("torch", reason="the script trains with torch")
    return {layers: traced(layers) for layers in (2, 4)}


@cache
def traced(layers: int) -> Trace:
    records: list[Record] = []
    dry(f"--layers={layers}", layout="", records=records)
    return trace_of(
        line for one in records if isinstance(one, AllocationRecord) for line in one.lines
    )


def dry(*arguments: str, layout: str, records: list[Record]) -> CheckResult:
    sizes = (f"--{name}={size}" for name, size in SIZES.items())
    return check(
        [sys.executable, str(TRAIN), *sizes, *arguments],
        "A100",
        folder=TRAIN.parent,
        environment=dict(os.environ),
        select=["dry-run-failed", "dry-run-memory"],
        dry=Limits(seconds=60),
        layout=layout,
        on_record=records.append,
    )


SCORES = 5 * HEADS * SEQUENCE / WIDTH


@pytest.mark.parametrize(
    ("layout", "published"),
    [
        ("data=1", 34 + SCORES),  # equation 1
        ("tensor=4", 10 + 24 / 4 + SCORES / 4),  # equation 2
        ("tensor=4,sequence", (34 + SCORES) / 4),  # equation 4
        ("pipeline=2", 34 + SCORES),  # section 4.2.3: half the layers, twice the micro-batches
        ("pipeline=2,tensor=2,sequence", (34 + SCORES) / 2),
        ("context=2", (34 + SCORES) / 2),
        ("fsdp=8", 34 + SCORES),
    ],
)
def test_activations_of_a_layer_are_those_of_korthikanti_and_others(
    traces: dict[int, Trace], layout: str, published: float
) -> None:
    held = [memory(trace, layout).memory.by_kind["activation"] for trace in traces.values()]
    assert (held[1] - held[0]) / 2 == pytest.approx(published * SEQUENCE * BATCH * WIDTH, rel=0.01)


def test_stages_share_the_parameters(traces: dict[int, Trace]) -> None:
    whole, half = memory(traces[4], "data=1"), memory(traces[4], "pipeline=2")
    assert whole.states / 2 < half.states < 0.7 * whole.states  # the embeddings are in one stage
    assert half.gpus == 2
    assert memory(traces[4], "pipeline=4,tensor=2").states < half.states / 2


def test_fsdp_gathers_two_blocks_and_what_is_outside(traces: dict[int, Trace]) -> None:
    one, many = memory(traces[2], "fsdp=2"), memory(traces[2], "fsdp=64")
    gathered = many.memory.by_kind["communication"]
    assert gathered == one.memory.by_kind["communication"]
    assert many.states < one.states / 30
    assert many.memory.allocated.low < many.memory.allocated.likely


def test_the_answer_names_what_cannot_be_divided(traces: dict[int, Trace]) -> None:
    flat = replace(traces[2], names={}, sites=())
    assert "no stack of numbered layers" in str(divided(flat, Layout.read("tensor=2"), A100, {}))
    assert "8 pipeline stages for 2" in str(divided(traces[2], Layout.read("pipeline=8"), A100, {}))
    sharded = replace(traces[2], kinds={**traces[2].kinds, 0: "communication"})
    assert "already divides" in str(divided(sharded, Layout.read("fsdp=2"), A100, {}))


def test_a_check_reports_the_layout(traces: dict[int, Trace]) -> None:
    found = dry("--layers=2", layout="fsdp=4,tensor=2", records=[])
    layout = found.to_dict()["dry"][0]["layout"]
    assert layout["gpus"] == 8
    assert layout["layout"] == "fsdp=4,tensor=2"
    assert layout["memory"]["allocated"]["likely"] < found.dry[0].memory.allocated.likely  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fsdp", "requires a number"),
        ("fsdp=0", "requires a number"),
        ("fsdp=8,zero1=2", "contradicts"),
        ("experts=4", "unknown"),
        ("sequence", "requires tensor"),
        ("", "unknown"),
        ("tensor=99999999999999999999", "requires a number"),
    ],
)
def test_wrong_layouts_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Layout.read(text)


@given(
    st.fixed_dictionaries(
        {
            name: st.integers(1, 64)
            for name in ("data", "zero1", "tensor", "pipeline", "context", "expert")
        }
    )
)
def test_a_layout_is_read_as_it_is_written(sizes: dict[str, int]) -> None:
    layout = Layout.read(",".join(f"{name}={size}" for name, size in sizes.items()))
    product = 1
    for size in sizes.values():
        product *= size
    assert layout.gpus == product
    if layout.gpus > 1:
        again = Layout.read(str(layout))
        assert replace(again, stage=layout.stage) == layout
