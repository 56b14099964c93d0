"""The decisions of an annotator, as an append-only file: one line each, on disk before the next question.

    {"time": "2026-03-01T09:30:00Z", "did": "answer", "id": "job-17", "question": "phase", "value": "training",
     "version": "3f0c..."}

An answer that is undone stays in the file; a later line undoes it.
"""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from epochzero.errors import InputError, reading, writing
from epochzero.platform import lock

Did = Literal["answer", "skip", "undo", "note"]


@dataclass(frozen=True, slots=True)
class LabelDecision:
    """A line of the journal.

    Attributes:
        time: in UTC, ISO 8601.
        did: answer a question, skip the record, undo the last answer or skip, or write a note.
        id: of the record.
        question: that was answered.
        value: name of the choice, or the note.
        version: of the definitions that were shown.
    """

    time: str
    did: Did
    id: str
    question: str = ""
    value: str = ""
    version: str = ""


@dataclass
class Labels:
    """The state after the decisions of one annotator.

    Attributes:
        answers: by record, then question.
        skips: how often a record was skipped.
        notes: by record.
        undoable: answers and skips that are still valid, in order.
        versions: of the definitions of all answers.
        unreadable: number of invalid lines.
    """

    answers: dict[str, dict[str, str]] = field(default_factory=dict)
    skips: dict[str, int] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    undoable: list[LabelDecision] = field(default_factory=list)
    versions: set[str] = field(default_factory=set)
    unreadable: int = 0

    def add(self, decision: LabelDecision) -> None:
        """Apply a further decision."""
        if decision.did == "answer":
            self.answers.setdefault(decision.id, {})[decision.question] = decision.value
            self.versions.add(decision.version)
            self.undoable.append(decision)
        elif decision.did == "skip":
            self.skips[decision.id] = self.skips.get(decision.id, 0) + 1
            self.undoable.append(decision)
        elif decision.did == "note":
            self.notes[decision.id] = decision.value
        elif self.undoable:
            last = self.undoable.pop()
            if last.did == "skip":
                self.skips[last.id] -= 1
            else:
                self.answers[last.id].pop(last.question, None)


def read_journal(path: Path) -> Labels:
    """Return the state after the decisions of a file; empty if the file does not exist.

    Raises:
        InputError: it cannot be read.
    """
    with reading(path):
        lines = path.read_bytes().split(b"\n") if path.exists() else []
    labels = Labels()
    for line in filter(bytes.strip, lines):
        try:
            fields = json.loads(line)
            if not all(isinstance(field, str) for field in fields.values()):
                raise ValueError("a field is not a string")
            labels.add(LabelDecision(**fields))
        except (ValueError, TypeError, AttributeError, RecursionError):
            labels.unreadable += 1
    return labels


class LabelJournal(AbstractContextManager["LabelJournal"]):
    """The open file of one annotator; a second session of the same name is rejected.

    Args:
        path: the file; it and its directory are created if necessary.
        version: of the definitions, stored with each decision.

    Raises:
        InputError: it cannot be read or written, or is in use.
    """

    def __init__(self, path: Path, version: str) -> None:
        self.path = path
        self._version = version
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b", buffering=0)
        try:
            lock(self._file.fileno())
        except OSError as error:
            self._file.close()
            raise InputError(f"{path}: another session of this annotator is open") from error
        self.labels = read_journal(path)
        if self._file.seek(0, os.SEEK_END):
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                # A line cut off by a crash must not be joined with the next one.
                self._write(b"\n")

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, did: Did, identity: str, question: str = "", value: str = "") -> None:
        """Write a decision; it is on disk when this returns.

        Raises:
            InputError: it cannot be written and does not count.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        decision = LabelDecision(now, did, identity, question, value, self._version)
        fields = {name: text for name, text in asdict(decision).items() if text}
        self._write(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        self.labels.add(decision)

    def _write(self, line: bytes) -> None:
        with writing(self.path):
            if self._file.write(line) != len(line):
                raise InputError(f"{self.path} cannot be written completely: the disk may be full")
            os.fsync(self._file)
