"""Records to label, and what annotators see of them: neither secrets nor labels in the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochzero.errors import InputError
from epochzero.logs.source import Log
from epochzero.redact import redact, redact_log
from epochzero.study.corpora import CorpusBuilder
from epochzero.study.sources import jobs_in, records_in

_TITLES = ("title", "summary")
_TEXTS = ("description", "log")
_INVISIBLE = [*range(0x80, 0xA0), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
              *range(0x2060, 0x2070), 0xFEFF]  # fmt: skip
"""Characters that are invisible or change the direction of a line."""
_SHOWN: Mapping[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    **{code: f"<U+{code:04X}>" for code in _INVISIBLE},
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),  # surrogates, which cannot be printed
    **{ord("\t"): "    ", ord("\n"): "\n", 0x7F: "\u2421"},
}


@dataclass(frozen=True, slots=True)
class LabelItem:
    """A record to label.

    Attributes:
        id: unique in its file.
        record: all its fields, for an export.
        logs: its logs, if they are files of a directory.
    """

    id: str
    record: Mapping[str, Any] = field(repr=False)
    logs: tuple[Log, ...] = field(default=(), repr=False)

    @property
    def title(self) -> str:
        """Its title in one line, redacted and made `visible`; may be empty."""
        texts = (self.record.get(name) for name in _TITLES)
        title = redact(next((text for text in texts if isinstance(text, str)), ""))
        return " ".join(visible(title).split())

    @property
    def text(self) -> str:
        """Its text, redacted and made `visible`.

        Raises:
            InputError: a log can no longer be read.
        """
        texts = [
            redact(value) for name in _TEXTS if isinstance(value := self.record.get(name), str)
        ]
        texts += [_read(log, named=len(self.logs) > 1) for log in self.logs]
        return visible("\n\n".join(texts))


@dataclass(frozen=True, slots=True)
class LabelItems:
    """The records of a file, or the jobs of a directory.

    Attributes:
        items: in order.
        left_out: number of records that cannot be labeled, by reason.
    """

    items: tuple[LabelItem, ...]
    left_out: Mapping[str, int]


def read_items(path: Path) -> LabelItems:
    """Read a JSON Lines file, optionally compressed by gzip, or the logs of a directory.

    In a directory, each subdirectory is a record with all its logs, and each log directly in it is one.

    Raises:
        InputError: it cannot be read, or contains nothing to label.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or directory")
    builder = CorpusBuilder(path.name)
    found = _of_folder(path, builder) if path.is_dir() else _of_file(path, builder)
    left_out = builder.built().left_out
    if not found:
        why = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise InputError(
            f"{path} contains no records to label{f' ({why})' if why else ''}. Each line must be a JSON object "
            f"with one of {', '.join((*_TITLES, *_TEXTS))}"
        )
    return LabelItems(tuple(found.values()), left_out)


def _of_folder(folder: Path, builder: CorpusBuilder) -> dict[str, LabelItem]:
    found = {}
    for name, logs, inside in jobs_in(folder, builder):
        path = logs[0].path
        identity = name if inside or path is None else path.name
        found[identity] = LabelItem(identity, {"id": identity}, logs)
    return found


def _of_file(path: Path, builder: CorpusBuilder) -> dict[str, LabelItem]:
    found: dict[str, LabelItem] = {}
    for number, record in enumerate(records_in(path, builder), 1):
        if record is None:
            continue
        if not any(
            isinstance(record.get(n), str) and record[n].strip() for n in (*_TITLES, *_TEXTS)
        ):
            builder.leave_out("has no text to read")
            continue
        named = record.get("id")
        has_name = isinstance(named, str | int) and named != ""
        identity = visible(str(named)) if has_name else f"line {number}"
        if identity in found:
            builder.leave_out("has the id of an earlier record")
            continue
        found[identity] = LabelItem(identity, record)
    return found


def _read(log: Log, *, named: bool) -> str:
    text = redact_log(b"".join(block.data for block in log.blocks())).decode("utf-8", "replace")
    return f"==> {Path(log.name).name} <==\n{text}" if named else text


def visible(text: str) -> str:
    """Make control characters, which a terminal or a page would interpret, visible.

    >>> visible("\\x1b[31mred")
    '␛[31mred'
    """
    return text.replace("\r\n", "\n").translate(_SHOWN)
