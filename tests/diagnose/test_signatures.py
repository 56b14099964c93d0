"""Every signature that ships with the package keeps what its file promises."""

from __future__ import annotations

import functools
import re
from operator import attrgetter
from typing import TYPE_CHECKING

from epochzero.diagnose import Catalog, Signature, load_folder
from epochzero.diagnose.catalog import BUILTIN
from epochzero.diagnose.check import check_signature, scanner_of
from tests.catalogs import every
from tests.waiting import bounded_work

if TYPE_CHECKING:
    from collections.abc import Callable

    from epochzero.diagnose import Diagnosis
    from epochzero.logs.scan import Scanner

LEAST = 250


@functools.cache
def signatures() -> list[Signature]:
    """The built-in signatures by name; reading their files checks every field."""
    return sorted(Catalog(load_folder(BUILTIN)), key=attrgetter("name"))


@functools.cache
def scanner() -> Scanner:
    """What all signatures share."""
    return scanner_of(signatures())


def causes() -> list[Signature]:
    return [signature for signature in signatures() if signature.role == "cause"]


def harmless() -> list[Signature]:
    return [one for one in signatures() if one.role in ("advice", "benign", "teardown")]


def by_name(entries: Callable[[], list[Signature]]) -> Callable[..., Callable[..., None]]:
    return every("signature", entries, attrgetter("name"))


def test_there_are_enough() -> None:
    assert len(signatures()) >= LEAST


@by_name(signatures)
def test_what_its_file_promises(signature: Signature) -> None:
    assert list(check_signature(signature, scanner())) == []


@by_name(signatures)
def test_its_texts(signature: Signature) -> None:
    assert not signature.title.endswith(".")
    assert len(signature.title) <= 100
    assert signature.meaning.rstrip().endswith((".", "!", "?"))
    assert all(fix and fix == fix.strip() for fix in signature.fixes)
    assert signature.retry_reason or not signature.retry, "retry without a reason"
    if signature.role == "cause":
        assert signature.fixes, "a cause without a fix"


HOSTILE = [
    "Error: " + "a." * 2_000,
    "Error: " + "1" * 4_000,
    "Error: " + "/a" * 2_000,
    "Error:" + " " * 4_000 + "x",
    "Error: " + "'a' " * 1_000,
    "(" * 4_000,
    "-" * 4_000,
]


@by_name(signatures)
def test_its_pattern_takes_linear_time(signature: Signature) -> None:
    for text in HOSTILE:
        for pattern in filter(None, (signature.pattern, signature.within)):
            compiled = re.compile(pattern, re.MULTILINE)
            # A repetition without a bound ("repeat at most n times") makes this take hours.
            with bounded_work():
                compiled.search(text)


@by_name(causes)
def test_it_has_a_fix_whatever_it_captured(signature: Signature) -> None:
    catalog = Catalog([signature])
    for example in signature.examples:
        for match in catalog.matches(example.log, example.log):
            assert match.fixes({}), f"no fix is left for {dict(match.captured)}"


@by_name(causes)
def test_the_whole_catalogue_agrees_on_its_first_example(
    diagnose: Callable[..., Diagnosis], signature: Signature
) -> None:
    found = diagnose(signature.examples[0].log)
    if found.signature == signature.name and signature.retry_reason:
        assert (found.retry, found.retry_reason) == (signature.retry, signature.retry_reason)
    winner = found.signature or found.basis
    assert winner == signature.name or found.category == signature.category, (
        f"won by {winner} with {found.category}"
    )


@by_name(harmless)
def test_what_is_harmless_fails_no_job(
    diagnose: Callable[..., Diagnosis], signature: Signature
) -> None:
    found = diagnose(signature.examples[0].log)
    assert found.outcome != "failed", f"failed by {found.signature or found.basis}"
