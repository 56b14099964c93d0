"""What a report blames outside of the code."""

from __future__ import annotations

import pytest

from epochzero.locate.blame import RULES, Blame, blames, prime_suspect
from epochzero.locate.environment import read_environment
from epochzero.locate.query import query_of
from epochzero.locate.report import Report

ENVIRONMENT = """
## Environment
- OS: Ubuntu 18.04
- Python version: 3.7.4
- PyTorch version: 1.4.0
- CUDA/cuDNN version: 10.1 / 7.6
- GPU: GTX 1080 Ti
"""
TRACEBACK = """
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
  File "/usr/lib/python3.7/site-packages/scipy/sparse/base.py", line 80, in dot
    raise ValueError("bad")
ValueError: bad
"""


def found(title: str, text: str = "", own: tuple[str, ...] = ()) -> tuple[Blame, ...]:
    query = query_of(Report(title, text))
    return blames(query, read_environment(query.report), own)


def prime(title: str, text: str = "", own: tuple[str, ...] = ()) -> Blame | None:
    return next(iter(prime_suspect(found(title, text, own))), None)


def test_an_environment_section_alone_blames_nobody() -> None:
    assert found("The metric is wrong", f"It is twice what it should be.\n{ENVIRONMENT}") == ()


@pytest.mark.parametrize(
    ("title", "text", "suspect", "name"),
    [
        ("Sparse test is broken with scipy 1.1.0", "", "library", "scipy 1.1.0"),
        ("Wrong dates", "Since upgrading to pandas 1.0 the dates differ.", "library", "pandas"),
        ("Export", "It is incompatible with onnx.\nonnx==1.6.0", "library", "onnx 1.6.0"),
        ("Wrong sum", TRACEBACK + "scipy==1.4.1", "library", "scipy 1.4.1"),
        ("Bad", "CUDA driver version is insufficient", "driver", "CUDA"),
        ("Conv throws CUDNN_STATUS_EXECUTION_FAILED", "cudnn 7.6.5", "driver", "CUDNN 7.6.5"),
        (
            "It stops",
            f"RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n{ENVIRONMENT}",
            "gpu",
            "GTX 1080 Ti",
        ),
        ("Sizes are wrong on Windows", "", "operating_system", "Windows"),
        ("Reader stops", "cannot identify image file 'a.jpg'", "data", ""),
        ("Reader stops at a corrupted image", "", "data", "image"),
        ("CI fails on every change", "", "configuration", ""),
        ("Missing dependency", "It is not in requirements.txt", "configuration", "requirements"),
    ],
)
def test_who_is_blamed_is_the_suspect(title: str, text: str, suspect: str, name: str) -> None:
    blame = prime(title, text)
    assert blame is not None
    assert blame.suspect == suspect
    assert blame.name.startswith(name)


def test_a_traceback_that_ends_in_own_code_blames_no_library() -> None:
    assert prime("Wrong sum", TRACEBACK) is not None
    assert prime("Wrong sum", TRACEBACK, own=("scipy",)) is None


def test_own_library_is_not_blamed_for_being_named() -> None:
    assert prime("Embedding is wrong in PyTorch 1.4.0", own=("torch",)) is None


def test_the_evidence_is_a_line_of_the_report() -> None:
    text = f"We see this:\n  RuntimeError: CUDA out of memory.\n{ENVIRONMENT}"
    lines = {line.strip() for line in text.split("\n")}
    assert all(blame.line in lines and blame.rule in RULES for blame in found("It stops", text))


def test_the_suspect_is_the_one_against_which_most_is_said() -> None:
    text = "See requirements.txt.\nSince upgrading to numpy 1.20 it fails.\nIt needs numpy < 1.20."
    told = prime_suspect(found("Fails after the numpy 1.20 release", text))
    assert {blame.suspect for blame in told} == {"library"}
    assert [blame.weight for blame in told] == sorted((b.weight for b in told), reverse=True)


def test_nothing_blamed_has_no_suspect() -> None:
    assert prime_suspect(()) == ()
