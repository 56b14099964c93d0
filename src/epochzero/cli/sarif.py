"""Findings, rankings and diagnoses in SARIF, the Static Analysis Results Interchange Format.

Source: version 2.1.0, OASIS standard, 2020. What editors and code scanning need beside what it requires
is there too: fingerprints that stay when lines move, help of rules, messages of related places.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from epochzero import __version__
from epochzero.cli.output import echo_json

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
_FINGERPRINT = "epochzero/v1"
_FINGERPRINT_LENGTH = 32


def write(
    rules: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]],
    *,
    root: Path | None = None,
    **of_the_run: Any,
) -> None:
    """Prints a log of one run.

    Args:
        rules: descriptors, to which the results refer by ``ruleIndex``.
        results: each with at least ``ruleId``, ``message`` and ``level``.
        root: the folder from which relative paths are seen; None where it is whatever is open.
        of_the_run: its other properties.
    """
    driver = {"name": "EpochZero", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
        **of_the_run,
    }
    if root is not None:
        run["originalUriBaseIds"] = {_ROOT: {"uri": f"{root.absolute().as_uri()}/"}}
    echo_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


class Identities:
    """Fingerprints of the results of one run: of two that are alike each has its own."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def of(self, parts: Iterable[str]) -> dict[str, str]:
        """What ``partialFingerprints`` says of a result that is known by these texts."""
        told = json.dumps(list(parts)).encode()
        number = self._seen[told]
        self._seen[told] += 1
        digest = hashlib.sha256(b"%d %s" % (number, told)).hexdigest()
        return {_FINGERPRINT: digest[:_FINGERPRINT_LENGTH]}


def location(
    path: str, first: int = 0, *, last: int = 0, column: int = 0, told: str = ""
) -> dict[str, Any]:
    """A place in a file; empty for ``<command>`` and the like, which are no files.

    Args:
        path: absolute, or as seen from the root.
        first: line, from 1; 0 for the whole file.
        last: its last line; 0 where it is one.
        column: from 1; 0 where there is none.
        told: what to say of it.
    """
    if path.startswith("<"):
        return {}
    artifact = {"uri": quote(os.fsencode(path)), "uriBaseId": _ROOT}
    if os.path.isabs(path):
        artifact = {"uri": f"file://{quote(os.fsencode(path))}"}
    region = {"startLine": first, "endLine": last, "startColumn": column}
    physical: dict[str, Any] = {"artifactLocation": artifact}
    if first:
        physical["region"] = {name: value for name, value in region.items() if value}
    found: dict[str, Any] = {"physicalLocation": physical}
    if told:
        found["message"] = {"text": message(told)}
    return found


def message(text: str) -> str:
    """Plain text for a message, in which brackets and braces have a meaning."""
    for character in "\\[]":
        text = text.replace(character, f"\\{character}")
    return text.replace("{", "{{").replace("}", "}}")
