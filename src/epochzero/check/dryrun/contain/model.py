"""What a contained run may use, how it was contained, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

GIBIBYTE = 1 << 30


class Means(Enum):
    """What holds a job back."""

    NAMESPACES = "namespaces"
    LANDLOCK = "landlock"
    INTERCEPTION = "interception"


@dataclass(frozen=True, slots=True)
class Containment:
    """How a job is kept from lasting effects.

    Attributes:
        means: what holds it back.
        description: the same in a few words.
        leaks: what it cannot hold back, a sentence; empty where nothing is known.
        reason: why nothing better was to be had; empty for the best.
    """

    means: Means
    description: str
    leaks: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the job may use, over all its processes.

    There is no limit of processor time: that of the clock bounds it.

    Attributes:
        seconds: time by the clock.
        memory_bytes: memory that is held at once.
        processes: processes at once.
        file_bytes: size of one file.
        written_bytes: size of all files that it writes; they are kept in memory.
        open_files: descriptors of one process.
        output_bytes: what is kept of its output: half from the start, half from the end.
        record_bytes: length of one record; longer ones are dropped.
        records: number of records that are kept.
        all_record_bytes: length of all records that are kept.
    """

    seconds: float = 60.0
    memory_bytes: int = 16 * GIBIBYTE
    processes: int = 256
    file_bytes: int = 4 * GIBIBYTE
    written_bytes: int = 4 * GIBIBYTE
    open_files: int = 4096
    output_bytes: int = 1 << 18
    record_bytes: int = 1 << 20
    records: int = 100_000
    all_record_bytes: int = 1 << 26


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file or folder that the job would have created, changed or deleted.

    Attributes:
        path: of it.
        how: ``created``, ``changed`` or ``deleted``.
        size: in bytes.
        kept: a copy of it that outlives the run; None where there is none.
        directory: whether it is a directory.
    """

    path: Path
    how: str
    size: int
    kept: Path | None = None
    directory: bool = False


@dataclass(frozen=True, slots=True)
class Exit:
    """How a contained run ended, and what came out of it.

    Attributes:
        why: one sentence for a person.
        code: exit status of the first process; None where a signal or a limit ended it.
        signal: name of the signal that ended it, such as ``SIGSEGV``; empty for none.
        limit: the limit that was broken: ``time``, ``memory``, ``processes``; empty for none.
        seconds: time by the clock, with start and end of the containment.
        memory_bytes: the most memory that all processes were seen to hold at once.
        output: standard output and error together, its middle left out where it is long.
        output_bytes: how much output there was.
        records: lines that the job wrote to the pipe for records. Nothing about them is certain:
            the job's own code may have written them.
        records_dropped: lines that were too long or too many.
        changes: what it would have written or deleted; known with namespaces only.
        changes_left_out: how many more there are.
        containment: what held it back.
    """

    why: str
    code: int | None
    signal: str
    limit: str
    seconds: float
    memory_bytes: int
    output: str
    output_bytes: int
    records: tuple[bytes, ...]
    records_dropped: int
    changes: tuple[FileChange, ...]
    changes_left_out: int
    containment: Containment
