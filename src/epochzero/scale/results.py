"""RESULT: Parquet files with a row for each log, and a manifest that lists them.

A row is a diagnosis in its JSON form (``docs/json.md``), each field a column. A part is named by a hash of its input
and appears atomically, so that a resumed run recognizes finished parts by their names.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from epochzero import __version__
from epochzero.diagnose import Diagnosis, Facts, Signature
from epochzero.diagnose.model import FAILURES
from epochzero.diagnose.model import SCHEMA as DIAGNOSIS
from epochzero.errors import InputError
from epochzero.scale.storage import Storage, arrow

SCHEMA = "epochzero.diagnoses/1"
RUN, MANIFEST = "run.json", "manifest.json"
NOT_DIAGNOSED = "not_diagnosed"
"""Outcome of a log that could not be diagnosed; `error` states why."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScaleRun:
    """Parameters that determine the results.

    Attributes:
        source, out: addresses of SOURCE and RESULT.
        signatures: in addition to the built-in ones.
        redact: hide tokens, keys and passwords.
    """

    source: str
    out: str
    signatures: tuple[Signature, ...] = field(default=(), repr=False)
    redact: bool = True

    def described(self) -> dict[str, Any]:
        """Return its form in ``run.json``; a different one means different results."""
        own = (
            repr(sorted(self.signatures, key=lambda signature: signature.name))
            if self.signatures
            else ""
        )
        return {
            "schema": SCHEMA,
            "source": Storage.at(self.source).name,
            "version": __version__,
            "signatures": blake2b(own.encode(), digest_size=12).hexdigest() if own else "",
            "redact": self.redact,
        }

    @property
    def key(self) -> str:
        """Return a key that distinguishes it from other runs."""
        return json.dumps(self.described())


def is_result(folder: Path) -> bool:
    """Whether a local directory contains a RESULT, complete or not."""
    return (folder / RUN).is_file() or (folder / MANIFEST).is_file()


def read_rows(address: str) -> Iterator[Row]:
    """Yield the rows of a complete RESULT.

    Raises:
        InputError: it cannot be read, or its run has not ended.
    """
    storage = Storage.at(address)
    if MANIFEST not in {element.name for element in storage.listed()}:
        raise InputError(
            f"{storage.name} has no {MANIFEST}: its run is incomplete; repeat the command to resume it"
        )
    try:
        parts = [str(name) for name in json.loads(storage.read(MANIFEST))["parts"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{storage.name}/{MANIFEST} is damaged") from error
    for part in parts:
        yield from storage.table([part]).to_pylist()


def diagnosed(name: str, found: Diagnosis, facts: Facts) -> Row:
    """Return the row of a log."""
    ran = facts.start is not None and facts.end is not None and facts.end >= facts.start
    seconds = facts.end - facts.start if ran and facts.end and facts.start else None
    return {"id": name, "error": "", "time": facts.end, "seconds": seconds, **found.to_dict()}


def not_diagnosed(name: str, error: str) -> Row:
    """Return the row of a log that could not be diagnosed."""
    return {"id": name, "error": error, "schema": DIAGNOSIS, "outcome": NOT_DIAGNOSED}


class Result:
    """The directory or bucket with the results of a run.

    Args:
        run: parameters of the run.
    """

    def __init__(self, run: ScaleRun) -> None:
        self.run = run
        self._storage = Storage.at(run.out)

    def begin(self) -> set[str]:
        """Prepare the directory.

        Returns:
            The names of existing parts.

        Raises:
            InputError: it contains something else, or cannot be written to.
        """
        there = {element.name for element in self._storage.listed()}
        if RUN in there:
            self._check_same_run()
        elif there:
            raise InputError(
                f"{self._storage.name} is not empty and contains no diagnoses; choose a new directory"
            )
        else:
            described = json.dumps(self.run.described(), indent=1)
            self._storage.write(RUN, described.encode())
        return {name for name in there if name.startswith("part-") and name.endswith(".parquet")}

    def _check_same_run(self) -> None:
        try:
            before = json.loads(self._storage.read(RUN))
        except (ValueError, RecursionError):
            before = None
        now = self.run.described()
        if not isinstance(before, dict):
            raise InputError(f"{self._storage.name}/{RUN} is damaged; choose a new directory")
        if differs := [name for name in now if before.get(name) != now[name]]:
            differences = ", ".join(
                f"{name} {before.get(name)!r}, now {now[name]!r}" for name in differs
            )
            raise InputError(
                f"{self._storage.name} contains the results of another run ({differences}); choose a new directory"
            )

    def write(self, part: str, rows: Iterable[Row]) -> None:
        """Write a part atomically.

        Raises:
            InputError: it cannot be written.
        """
        buffer = io.BytesIO()
        arrow("pyarrow.parquet").write_table(_table(list(rows)), buffer, compression="zstd")
        self._storage.write(part, buffer.getvalue())

    def finish(self, parts: list[str]) -> Summary:
        """Write the manifest, and remove files that it does not list.

        Args:
            parts: names, in the order of the logs.

        Raises:
            InputError: a part cannot be read, or the manifest cannot be written.
        """
        summary = self._summary(parts)
        manifest = {"schema": SCHEMA, **asdict(summary), "parts": parts}
        self._storage.write(MANIFEST, json.dumps(manifest, indent=1).encode())
        kept = {RUN, MANIFEST, *parts}
        self._storage.remove(
            element.name for element in self._storage.listed() if element.name not in kept
        )
        return summary

    def _summary(self, parts: list[str]) -> Summary:
        table = self._storage.table(parts, ["outcome", "category"])
        outcomes = _counted(table, "outcome")
        failed = table.filter(arrow("pyarrow.compute").field("outcome").isin(sorted(FAILURES)))
        return Summary(table.num_rows, outcomes, _counted(failed, "category"))


@dataclass(frozen=True, slots=True)
class Summary:
    """Contents of RESULT.

    Attributes:
        logs: number of rows.
        outcomes: rows by outcome.
        categories: failures by category, most frequent first.
    """

    logs: int
    outcomes: Mapping[str, int]
    categories: Mapping[str, int]


def _table(rows: list[Row]) -> Any:
    """Return the rows as a `pyarrow.Table`; a row that its columns cannot hold is replaced by an error."""
    pa = arrow()
    try:
        return pa.Table.from_pylist(rows, schema=_columns())
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        if len(rows) == 1:
            return _table(
                [not_diagnosed(rows[0]["id"], f"its diagnosis cannot be written: {error}")]
            )
        return pa.concat_tables([_table([row]) for row in rows])


def _counted(table: Any, column: str) -> dict[str, int]:
    counts = table[column].drop_null().value_counts().to_pylist()
    pairs = sorted(
        ((count["values"], count["counts"]) for count in counts),
        key=lambda pair: (-pair[1], pair[0]),
    )
    return dict(pairs)


@cache
def _columns() -> Any:
    """Return the columns of a part: those of `Diagnosis.to_dict`, and properties of the log."""
    pa = arrow()
    text, number, whole = pa.string(), pa.float64(), pa.int64()
    texts = pa.list_(text)
    place = pa.struct([("file", text), ("line", whole), ("function", text), ("code", text)])
    root = pa.struct(
        [
            ("file", text),
            ("line", whole),
            ("text", text),
            ("rank", whole),
            ("host", text),
            ("time", number),
        ]
    )
    consequence = pa.struct(
        [("rank", whole), ("title", text), ("text", text), ("file", text), ("line", whole), ("role", text),
         ("count", whole)]
    )  # fmt: skip
    return pa.schema(
        [
            ("id", text), ("error", text), ("time", number), ("seconds", number), ("schema", text),
            ("source", texts), ("outcome", text), ("category", text), ("dimension", text),
            ("root_cause", text), ("phase", text), ("retry", text), ("retry_reason", text),
            ("confidence", number), ("also", texts), ("title", text), ("meaning", text), ("root", root),
            ("exception", pa.struct([("type", text), ("message", text)])), ("user_frame", place),
            ("stack", pa.list_(place)), ("evidence", texts), ("cascade", pa.list_(consequence)),
            ("fixes", texts), ("signature", text), ("basis", text), ("fingerprint", text),
            ("fingerprint_weak", pa.bool_()),
            ("end", pa.struct([("state", text), ("evidence", text), ("reason", text)])),
            ("cost", pa.struct([("gpus", whole), ("seconds", number), ("gpu_hours", number)])),
            ("notes", texts),
        ]
    )  # fmt: skip
