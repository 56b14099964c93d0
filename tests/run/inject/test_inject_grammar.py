"""How faults are asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.errors import InputError
from epochzero.run.inject.catalog import KINDS
from epochzero.run.inject.grammar import InjectedFault, parsed, parsed_all


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kill-rank@step:3", InjectedFault("kill-rank@step:3", "kill-rank", step=3)),
        ("kill-rank=2@1.5s", InjectedFault("kill-rank=2@1.5s", "kill-rank", after=1.5, rank=2)),
        (
            "disk-full@step:7:for=2m",
            InjectedFault("disk-full@step:7:for=2m", "disk-full", step=7, lasts=120.0),
        ),
        (
            "network-drop@0s",
            InjectedFault("network-drop@0s", "network-drop", after=0.0, word="fail"),
        ),
        (
            "slow-storage=200ms@1h",
            InjectedFault("slow-storage=200ms@1h", "slow-storage", after=3600.0, delay=0.2),
        ),
        ("preempt@60s", InjectedFault("preempt@60s", "preempt", after=60.0, notice=30.0)),
        (
            "preempt@1m:notice=5s",
            InjectedFault("preempt@1m:notice=5s", "preempt", after=60.0, notice=5.0),
        ),
        ("oom@step:1", InjectedFault("oom@step:1", "oom", step=1)),
    ],
)
def test_a_fault_is_what_it_says(text: str, fault: InjectedFault) -> None:
    assert parsed(text) == fault


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("kil-rank@3s", "did you mean kill-rank"),
        ("flood@3s", "choose one of disk-full, host-oom"),
        ("", "unknown fault ''"),
        ("kill-rank", "missing time"),
        ("kill-rank@", "missing time"),
        ("kill-rank=x@3s", "'x' is not a rank"),
        ("kill-rank=-1@3s", "'-1' is not a rank"),
        ("kill-rank@step:0", "'0' is not a step"),
        ("kill-rank@step:", "'' is not a step"),
        ("kill-rank@3", "'3' is not a time"),
        ("kill-rank@999999h", "is not a time"),
        ("oom@3s", "write oom@step:N"),
        ("oom=4@step:3", "takes no value"),
        ("slow-storage@3s", "requires a value"),
        ("slow-storage=much@3s", "'much' is not a time"),
        ("network-drop=hung@3s", "did you mean hang"),
        ("disk-full@3s:fro=3s", "did you mean for"),
        ("disk-full@3s:for", "write for=10s"),
        ("disk-full@3s:for=1s:for=2s", "given twice"),
        ("kill-rank@3s:for=3s", "this fault has no options"),
    ],
)
def test_what_is_wrong_is_told_with_what_would_be_right(text: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        parsed(text)


@pytest.mark.parametrize(
    ("texts", "hint"),
    [
        (("kill-rank@3s", "kill-rank=0@3000ms"), "the same fault at the same time"),
        (("preempt@3s", "preempt@step:9"), "once per attempt"),
        (("disk-full@3s", "disk-full@9s:for=1s"), "the first has no end"),
    ],
)
def test_faults_that_cannot_both_be_are_refused(texts: tuple[str, ...], hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        parsed_all(texts)


def test_faults_that_can_both_be_are_taken() -> None:
    texts = ("kill-rank=1@3s", "kill-rank=2@3s", "disk-full@3s:for=1s", "disk-full@9s")
    assert [fault.text for fault in parsed_all(texts)] == list(texts)


@given(
    st.text(max_size=40) | st.from_regex(rf"({'|'.join(KINDS)})(=\w+)?@[\w:=.]+", fullmatch=True)
)
def test_any_text_is_a_fault_or_an_input_error(text: str) -> None:
    try:
        fault = parsed(text)
    except InputError:
        return
    assert (fault.step is None) != (fault.after is None)
