"""What the reader finds in messages of Python, C++ checks, status codes and the JVM."""

from __future__ import annotations

import pytest

from epochzero import taxonomy
from epochzero.diagnose.message import category_of, read_message
from epochzero.diagnose.message.reader import _decisions

READINGS = [
    # relation, subject, message
    ("differs", "shape", "mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)"),
    ("differs", "shape", "Check failed: lshape == rshape ([3,4] vs. [4,3]) dimension mismatch"),
    ("differs", "device", "Expected all tensors to be on the same device, but found two of them"),
    ("expected_other", "dtype", "expected scalar type Float but found Half"),
    ("out_of_range", "index", "index 5 is out of bounds for axis 0 with size 5"),
    ("out_of_range", "", "Invalid CUDAPlace(1), must inside [0, 1)"),
    ("differs", "number", "Number of environments must match number of minibatches"),
    ("none", "type", "'NoneType' object has no attribute 'shape'"),
    ("none", "", 'Cannot invoke "Model.fit()" because it is null'),
    ("missing", "file", "could not find the folder of images"),
    ("missing", "module", "cannot load the plugin"),
    ("missing", "key", "column price not found"),
    ("required", "argument", "a target must be provided"),
    ("unexpected", "argument", "fit() got an unexpected keyword argument 'foo'"),
    ("unimplemented", "operator", "UNIMPLEMENTED: this operation is not implemented for TPU"),
    ("denied", "file", "PERMISSION_DENIED: no access to the file"),
    ("exhausted", "memory", "RESOURCE_EXHAUSTED: not enough memory for the allocation"),
    ("expired", "peer", "DEADLINE_EXCEEDED: the server took too long"),
    ("truncated", "data", "DATA_LOSS: truncated record"),
    ("wrong_state", "graph", "the session has already been closed"),
]


@pytest.mark.parametrize(("relation", "subject", "message"), READINGS)
def test_relation_and_subject(relation: str, subject: str, message: str) -> None:
    reading = read_message(message)
    assert (reading.relation, reading.subject) == (relation, subject)


def test_operands() -> None:
    reading = read_message("expected scalar type Float but found Half")
    assert (reading.wanted, reading.found) == ("scalar type Float", "Half")
    assert (reading.wanted_kind, reading.found_kind) == ("dtype", "dtype")


def test_a_bare_assertion_is_read_in_its_source_line() -> None:
    reading = read_message("", "assert x.shape == y.shape")
    assert (reading.relation, reading.subject, reading.asserted) == ("differs", "shape", True)


@pytest.mark.parametrize(
    ("code", "subject"),
    [
        ("assert outputs.is_cuda", "device"),
        ("assert all(x.is_cuda for x in inputs)", "device"),
        ("assert context.executing_eagerly()", "graph"),
    ],
)
def test_the_property_is_what_is_asserted_not_its_owner(code: str, subject: str) -> None:
    assert read_message("", code).subject == subject


@pytest.mark.parametrize(
    "place",
    [
        "[09:10:11] /build/src/io/file_store.cc:88: ",
        "C:\\work\\files\\list.cpp(12): ",
        "at [/path/to/library/files.h:7] ",
    ],
)
def test_the_place_of_a_native_check_is_not_read(place: str) -> None:
    assert read_message(f"{place}Check failed: ok: it did not work").subject == ""
    assert read_message(f"{place}cannot find the plugin").subject == "module"


def test_the_clause_that_says_what_did_not_hold_is_read_not_the_heading_above_it() -> None:
    assert read_message("Evaluation error\nindex 5 is out of range").relation == "out_of_range"


def test_what_a_path_spells_is_not_read() -> None:
    assert read_message("/data/corrupted/missing/x.bin").relation == ""


def test_nothing_is_read_of_noise() -> None:
    assert read_message("#" * 100_000).relation == ""
    assert category_of(read_message("")) == ""


def test_every_decision_is_a_category() -> None:
    decided = {name for by_subject in _decisions().values() for name in by_subject.values()}
    assert decided <= set(taxonomy.categories())


@pytest.mark.parametrize(
    "message",
    [
        "timeout option should be non-negative",
        "timeout must be greater than 0",
        "port must be between 1 and 65535, got 0",
    ],
)
def test_a_sentence_about_a_value_is_about_the_argument(message: str) -> None:
    """A noun in it is what is set, not what happened."""
    assert read_message(message).relation == "not_allowed"


def test_a_time_that_is_over_has_expired() -> None:
    assert read_message("read timeout while waiting for the server").relation == "expired"
