"""Validates signature files: their examples must be diagnosed as declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from epochzero.diagnose.catalog import Catalog, Signature, load_file
from epochzero.diagnose.judgment import match_event
from epochzero.errors import CatalogError
from epochzero.logs.events import events_of
from epochzero.logs.scan import Scanner
from epochzero.logs.source import Log


def check_folder(folder: Path) -> tuple[list[str], int]:
    """All problems of the signatures in a directory, and the number of signatures."""
    problems: list[str] = []
    signatures: list[Signature] = []
    for path in sorted(folder.rglob("*.toml")):
        try:
            signatures.append(load_file(path, folder))
        except CatalogError as error:
            problems.append(str(error))
    scanner = scanner_of(signatures)
    for signature in signatures:
        problems.extend(check_signature(signature, scanner))
    return problems, len(signatures)


def scanner_of(signatures: Sequence[Signature]) -> Scanner:
    """A scanner that `check_signature` can use for each of these signatures: compiling one for each is slow."""
    return Scanner([anchor for signature in signatures for anchor in signature.anchors])


def check_signature(signature: Signature, scanner: Scanner | None = None) -> Iterator[str]:
    """The examples of a signature that are not diagnosed as declared.

    The examples pass through all stages: scan, events, match. An anchor that is missing in an example,
    or a line that the scan would not select, is therefore found too.

    Args:
        signature: to validate.
        scanner: has the anchors of the signature; those of others are ignored.
    """
    catalog = Catalog([signature])
    scanner = (scanner or scanner_of([signature])).narrowed(signature.anchors)
    for number, example in enumerate(signature.examples, 1):
        captured = _matched(catalog, scanner, example.log)
        if captured is None:
            yield f"{signature.name}: example {number} does not match"
            continue
        for name, value in example.fields.items():
            if captured.get(name) != value:
                yield (
                    f"{signature.name}: example {number} gives {name} = "
                    f"{captured.get(name)!r} instead of {value!r}"
                )
    for number, text in enumerate(signature.counter_examples, 1):
        if _matched(catalog, scanner, text) is not None:
            yield f"{signature.name}: counter-example {number} matches"


def _matched(catalog: Catalog, scanner: Scanner, text: str) -> dict[str, str] | None:
    """The captured values of a signature in a text; None if it does not match."""
    log = Log("example", text=text.encode())
    for event in events_of(log, scanner.scan(log), scanner.anchors):
        if (match := match_event(event, catalog)) is not None:
            return dict(match.captured)
    return None
