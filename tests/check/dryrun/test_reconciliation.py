"""What a true run and one on pretended GPUs say together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochzero.check.dryrun.attempt import DryRunAttempt, DryRunPlan
from epochzero.check.dryrun.contain import best_containment
from epochzero.check.dryrun.contain.model import Exit
from epochzero.check.dryrun.model import Mode
from epochzero.check.dryrun.reconciliation import Answer, RunOutcome, agreed
from epochzero.check.dryrun.records import ErrorRecord, FrameRecord, Record, UnfitRecord
from epochzero.check.findings import Finding, SourceLocation, Unknown

ENDED = Exit("", 1, "", "", 1.0, 0, "", 0, (), 0, (), 0, best_containment())
FINDING = Finding(
    "dry-run-failed", "error", "tensor_mismatch", "training", SourceLocation("a.py", 3), "", "", ""
)
UNKNOWN = Unknown("the code after this line", "it needs a GPU", SourceLocation("a.py", 3))


def outcome(
    mode: Mode, answer: Answer | None, message: str = "", *, record: Record | None = None
) -> RunOutcome:
    frames = (FrameRecord("/lib/torch/functional.py", 1),)
    raised = ErrorRecord("RuntimeError", message, frames=frames)
    return RunOutcome(DryRunAttempt(DryRunPlan(mode), ENDED, (record or raised,)), answer)


def together(
    real: Answer | None, fake: Answer | None, *, real_said: str = "", fake_said: str = ""
) -> list[Answer]:
    return agreed([outcome("real", real, real_said), outcome("fake", fake, fake_said)])


def test_one_cause_is_told_once() -> None:
    assert together(FINDING, replace(FINDING, place=SourceLocation("a.py", 4))) == [
        replace(FINDING, place=SourceLocation("a.py", 4))
    ]


def test_the_certain_one_of_two() -> None:
    assert together(FINDING, replace(FINDING, severity="warning")) == [FINDING]


def test_two_causes_are_told_both() -> None:
    other = replace(FINDING, category="key_not_found", place=SourceLocation("b.py", 9))
    assert together(FINDING, other) == [other, FINDING]


def test_what_an_object_lacks_does_not_depend_on_values() -> None:
    said = "'DistributedDataParallel' object has no attribute 'num_labels'"
    frames = (FrameRecord("train.py", 3), FrameRecord("/lib/torch/nn/modules/module.py", 9))
    fake = outcome("fake", FINDING, record=ErrorRecord("AttributeError", said, frames=frames))
    assert agreed([outcome("real", None), fake]) == [FINDING]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Expected all tensors to be on the same device", True),
        ("unscale_() has already been called", True),
        ("Attempting to unscale FP16 gradients.", True),
        ("binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.", True),
        ("the loss is one", False),
        ("FakeTensor has no storage on this device", False),
    ],
)
def test_a_failure_of_the_pretended_gpu_alone(said: str, kept: bool) -> None:
    (answer,) = together(None, FINDING, fake_said=said)
    assert (answer is FINDING) == kept
    assert kept or isinstance(answer, Unknown)


@pytest.mark.parametrize(
    ("said", "kept"),
    [("Target 9 is out of bounds", True), ("\"addmm\" not implemented for 'Half'", False)],
)
def test_a_failure_of_the_cpu_alone(said: str, kept: bool) -> None:
    assert together(FINDING, None, real_said=said) == ([FINDING] if kept else [])


def test_what_the_gpu_tried_is_not_unknown() -> None:
    assert together(UNKNOWN, None) == []
    assert together(UNKNOWN, UNKNOWN) == [UNKNOWN, UNKNOWN]


def test_a_torch_that_cannot_pretend() -> None:
    unfit = Unknown("errors that occur only on a GPU", "this torch cannot", SourceLocation("a.py"))
    fake = outcome("fake", unfit, record=UnfitRecord("this torch cannot"))
    assert agreed([outcome("real", None), fake]) == [unfit]
    assert agreed([outcome("real", UNKNOWN), fake]) == [UNKNOWN]


def test_what_fails_among_processes_counts_only_where_all_of_them_are() -> None:
    frames = (FrameRecord("/lib/torch/distributed/device_mesh.py", 9),)
    raised = ErrorRecord(
        "RuntimeError", "Mesh should not be bigger than the world size 1", frames=frames
    )
    real = outcome("real", FINDING, record=raised)
    assert agreed([real, outcome("fake", None)]) == []
    assert agreed([real, outcome("fake", FINDING)]) == [FINDING]
