"""Findings, rankings and diagnoses in SARIF, the Static Analysis Results Interchange Format.

Source: version 2.1.0, OASIS standard, 2020. Editors and code scanning also get what they need beyond the standard's
requirements: fingerprints that are stable when lines move, help of rules, messages of related locations.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from epochzero import __version__, taxonomy
from epochzero.cli import layout
from epochzero.cli.diagnosis_labels import title_of
from epochzero.cli.finding_labels import place_path
from epochzero.cli.formats import OutputFormat
from epochzero.cli.output import echo_json

if TYPE_CHECKING:
    from epochzero.check import CheckResult
    from epochzero.check.findings import Finding, SourceLocation, Unknown
    from epochzero.check.rules import Rule, Unread
    from epochzero.diagnose import Diagnosis
    from epochzero.locate import Item, Ranking

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
_FINGERPRINT = "epochzero/v1"
_FINGERPRINT_LENGTH = 32


class _Sarif(OutputFormat):
    def findings(self, found: CheckResult, *, folder: Path, verbose: bool, seconds: float) -> None:
        _write_findings(found, folder)

    def diagnoses(self, found: Iterable[Diagnosis], *, top: int, many: bool) -> None:
        _write_diagnoses([diagnosis for diagnosis in found if diagnosis.is_failure])

    def ranking(self, found: Ranking, *, explain: bool) -> None:
        _write_ranking(found)


def _write_findings(found: CheckResult, folder: Path) -> None:
    from epochzero.check.findings import SourceLocation
    from epochzero.check.result import SCHEMA
    from epochzero.check.rules import builtin, others
    from epochzero.check.settings import FILE as SETTINGS

    ids = sorted({*found.rules, *(finding.rule for finding in found.findings)})
    index = {name: number for number, name in enumerate(ids)}
    known: dict[str, Rule | Unread] = {rule.id: rule for rule in builtin()}
    known |= others()
    identities = _Identities()
    results = [_finding(finding, index, folder, identities) for finding in found.findings]
    for finding, reason in found.suppressed:
        if finding.rule in index:
            kind = "external" if reason.startswith(f"{SETTINGS}:") else "inSource"
            hidden = {"kind": kind, "justification": _message(reason)}
            result = _finding(finding, index, folder, identities)
            results.append({**result, "suppressions": [hidden]})
    program = next((w for job in found.jobs for w in job.split() if (folder / w).is_file()), ".")
    for result in results:
        # GitHub's code scanning rejects a file with a result that has no location.
        result.setdefault("locations", [_place(SourceLocation(program), folder)])
    notices = [_notice(unknown, folder) for unknown in found.unknowns]
    _write(
        [_rule(known[name]) for name in ids],
        results,
        root=Path.cwd(),
        invocations=[{"executionSuccessful": True, "toolExecutionNotifications": notices}],
        properties={"schema": SCHEMA, "target": found.target, "files": found.files},
    )


def _rule(rule: Rule | Unread) -> dict[str, Any]:
    texts = (rule.why, f"Fix: {rule.fix}", f"Source: {rule.source}")
    return {
        "id": rule.id,
        "shortDescription": {"text": _message(rule.title)},
        "fullDescription": {"text": _message(rule.why)},
        "help": {
            "text": _message("\n".join(texts)),
            "markdown": _message("\n\n".join(texts)),
        },
        "properties": {"tags": [rule.category]},
    }


def _finding(
    finding: Finding, index: dict[str, int], folder: Path, identities: _Identities
) -> dict[str, Any]:
    text = f"{finding.message} {finding.consequence} {finding.fix}"
    path = place_path(finding.place, folder)
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": finding.severity,
        "message": {"text": _message(layout.one_line(text))},
        # The text of the line replaces its number, which changes with every line above it.
        "partialFingerprints": identities.of(
            (finding.rule, path, finding.place.code or finding.message)
        ),
        "properties": {"category": finding.category, "phase": finding.phase},
    }
    if location := _place(finding.place, folder):
        result["locations"] = [location]
    via = [
        _place(place, folder, message="The job executes this line first.") for place in finding.via
    ]
    via += [_place(place, folder, message="The same cause.") for place in finding.also]
    if related := [location for location in via if location]:
        result["relatedLocations"] = [{"id": n, **at} for n, at in enumerate(related)]
    return result


def _notice(unknown: Unknown, folder: Path) -> dict[str, Any]:
    notice: dict[str, Any] = {
        "level": "note",
        "message": {
            "text": _message(layout.one_line(f"Not checked: {unknown.what}: {unknown.reason}"))
        },
    }
    if location := _place(unknown.place, folder):
        notice["locations"] = [location]
    return notice


def _place(place: SourceLocation, folder: Path, message: str = "") -> dict[str, Any]:
    return _location(place_path(place, folder), place.line, column=place.column, message=message)


def _write_diagnoses(failures: Sequence[Diagnosis]) -> None:
    """Write each failure at the innermost line of the user's own code, otherwise in the log."""
    from epochzero.diagnose.model import SCHEMA

    categories = sorted({found.category for found in failures})
    _write(
        [_category(name) for name in categories],
        [_diagnosis(found, categories.index(found.category)) for found in failures],
        root=Path.cwd(),
        properties={"schema": SCHEMA},
    )


def _category(category: str) -> dict[str, Any]:
    term = taxonomy.categories()[category]
    return {
        "id": category,
        "shortDescription": {"text": _message(term.title)},
        "fullDescription": {"text": _message(term.definition)},
        "help": {"text": _message(f"{term.definition} Source: {term.source}")},
    }


def _diagnosis(found: Diagnosis, index: int) -> dict[str, Any]:
    text = found.root.text.strip() if found.root else ""
    message = " ".join(part for part in (text, found.meaning, *found.fixes[:1]) if part)
    result: dict[str, Any] = {
        "ruleId": found.category,
        "ruleIndex": index,
        "level": "error",
        "message": {"text": _message(layout.one_line(message) or title_of(found))},
        "partialFingerprints": {}
        if found.fingerprint_weak
        else {"epochzero/failure": found.fingerprint},
        "properties": {"phase": found.phase, "retry": found.retry, "confidence": found.confidence},
    }
    log = _location(found.root.file, found.root.line or 0, message="The log") if found.root else {}
    frame = found.user_frame
    code = _location(frame.file, frame.line or 0) if frame else {}
    source = _location(found.source[0].strip("<>")) if found.source else {}
    places = [place for place in (code, log) if place] or [source]
    result["locations"] = places[:1]
    called = (
        _location(frame.file, frame.line or 0, message=f"In {frame.function}")
        for frame in reversed(found.stack)
    )
    if related := [place for place in (*places[1:], *called) if place]:
        result["relatedLocations"] = [{"id": n, **at} for n, at in enumerate(related)]
    return result


def _write_ranking(found: Ranking) -> None:
    from epochzero.locate.model import SCHEMA

    title = f"A {found.level} that may contain the reported bug"
    rule = {
        "id": f"locate/{found.level}",
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{title}, ranked by the evidence that both share."},
        "help": {
            "text": "The most likely location comes first. It is an estimate; review the reasons."
        },
        "defaultConfiguration": {"level": "note"},
    }
    identities = _Identities()
    _write(
        [rule],
        [_item(item, n, rule["id"], identities) for n, item in enumerate(found.items, 1)],
        properties={
            "schema": SCHEMA,
            "commit": found.commit,
            "method": found.method,
            "searched": found.searched,
        },
    )


def _item(item: Item, number: int, rule: object, identities: _Identities) -> dict[str, Any]:
    location = _location(item.path, item.start, last=item.end)
    if item.unit:
        location["logicalLocations"] = [{"fullyQualifiedName": item.unit, "kind": "function"}]
    reasons = "; ".join(layout.one_line(reason.text) for reason in item.reasons)
    return {
        "ruleId": rule,
        "ruleIndex": 0,
        "level": "note",
        "message": {"text": _message(f"Likely location {number} of the bug: {reasons}")},
        "locations": [location],
        "partialFingerprints": identities.of((str(rule), item.path, item.unit, item.code)),
        "rank": 100 / number,
        "properties": {"score": item.score},
    }


def _write(
    rules: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]],
    *,
    root: Path | None = None,
    **of_the_run: Any,
) -> None:
    """Print a log with one run.

    Args:
        rules: descriptors, to which the results refer by ``ruleIndex``.
        results: each with at least ``ruleId``, ``message`` and ``level``.
        root: directory to which relative paths refer; None for whatever directory is open.
        of_the_run: further properties of the run.
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


class _Identities:
    """Fingerprints of the results of one run; equal results get distinct ones."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def of(self, parts: Iterable[str]) -> dict[str, str]:
        """Return ``partialFingerprints`` for a result that these texts identify."""
        encoded = json.dumps(list(parts)).encode()
        number = self._seen[encoded]
        self._seen[encoded] += 1
        digest = hashlib.sha256(b"%d %s" % (number, encoded)).hexdigest()
        return {_FINGERPRINT: digest[:_FINGERPRINT_LENGTH]}


def _location(
    path: str, first: int = 0, *, last: int = 0, column: int = 0, message: str = ""
) -> dict[str, Any]:
    """Return a location in a file; empty for ``<command>`` and the like, which are not files.

    Args:
        path: absolute, or relative to the root.
        first: line, from 1; 0 for the whole file.
        last: last line; 0 for a single line.
        column: from 1; 0 if unknown.
        message: message of the location.
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
    if message:
        found["message"] = {"text": _message(message)}
    return found


def _message(text: str) -> str:
    """Escape text for a message, in which brackets and braces have a meaning."""
    for character in "\\[]":
        text = text.replace(character, f"\\{character}")
    return text.replace("{", "{{").replace("}", "}}")


FORMAT = _Sarif()
