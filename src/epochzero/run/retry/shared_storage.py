"""What of its environment a failure is about: files of a network file system, which other machines change and which can
lag behind or fail for a minute; files that only this node can change: a misspelt path is still misspelt after a minute;
or a resource of which other jobs may fail as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath

from epochzero.diagnose import Diagnosis
from epochzero.diagnose.fingerprint import is_weak
from epochzero.run.records.model import Start
from epochzero.run.retry.there_now import is_here

_NETWORK = frozenset(
    (
        "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs",
        "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "virtiofs", "wekafs",
    )
)  # fmt: skip
_NETWORK_FUSE = re.compile(
    r"fuse\.(?:alluxio|beegfs|blobfuse2?|ceph|gcsfuse|geesefs|gluster|goofys|hdfs|juicefs|mfs|moosefs"
    r"|mount-s3|rclone|s3fs|seaweedfs|sshfs|wekafs)"
)
_OF_A_NODE = ("gpu_fault", "communication_failure")
"""Categories of failures of a device of the node, whatever the job does with it."""
_ABOUT_FILES = ("path_not_found", "permission_denied", "library_not_found")
# Of Python itself: "can't open file '/job/trian.py': [Errno 2] ..."
_QUOTED = re.compile(
    r"\[Errno \d+\][^'\"\n]*['\"](?P<after>[^'\"\n]+)['\"]|open file ['\"](?P<before>[^'\"\n]+)['\"]: \[Errno"
)
_PATH = re.compile(r"(?<![\w./:])/(?:[\w.@+=%~-]+/)+[\w.@+=%~-]+")
_MOUNTS = Path("/proc/self/mountinfo")


def shared_storage(diagnosis: Diagnosis, started: Start, mounts: Path = _MOUNTS) -> str:
    """The source of the network file system with the failure's files, such as ``server:/export``.

    Empty if they are on none, or if it is unknown.
    """
    listed = _mounts_seen_by(diagnosis, started, mounts)
    for path in _named(diagnosis, started):
        kind, source = _mount(path, listed)
        if _is_network(kind):
            return source
    return ""


def local_files(diagnosis: Diagnosis, started: Start, mounts: Path = _MOUNTS) -> str:
    """The path that a failure is about if it is on a file system of this node; empty if it is not, or unknown."""
    if diagnosis.category not in _ABOUT_FILES:
        return ""
    found: list[PurePath] = [*_quoted(diagnosis, started)]
    if diagnosis.category == "library_not_found":
        # The module that imports it is in the same environment.
        found += [PurePath(started.folder, frame.file) for frame in diagnosis.stack[-1:]]
    listed = _mounts_seen_by(diagnosis, started, mounts)
    kinds = [_mount(path, listed)[0] for path in found]
    return str(found[0]) if kinds and all(kinds) and not any(map(_is_network, kinds)) else ""


def shared_resource(diagnosis: Diagnosis, started: Start, subject: str = "") -> str:
    """What a failure is about that other jobs may use as well: equal in all jobs that fail because of it.

    It is the subject of the message; a device of the node; an absolute path outside the job's directory, by its first part
    that does not exist; for other failures of the infrastructure their fingerprint. Empty if it is about the job alone.

    Args:
        diagnosis: of the attempt.
        started: its first record.
        subject: what of the environment its message is about, see `epochzero.run.retry.subject`.
    """
    if subject:
        return f"{diagnosis.category}: {re.split(r' [0-9]', subject)[0]}"
    if diagnosis.category in _ABOUT_FILES:
        outside = (p for p in _quoted(diagnosis, started) if not p.is_relative_to(started.folder))
        return next((str(_first_missing(path)) for path in outside), "")
    if diagnosis.dimension != "infrastructure" or diagnosis.retry == "fails_again":
        return ""
    if diagnosis.category in _OF_A_NODE:
        return diagnosis.category
    return "" if is_weak(diagnosis.fingerprint) else diagnosis.fingerprint


def _quoted(diagnosis: Diagnosis, started: Start) -> Iterator[Path]:
    """The paths that the system refused, as its message names them."""
    for text in _texts(diagnosis):
        for match in _QUOTED.finditer(text):
            yield Path(os.path.normpath(Path(started.folder, match["after"] or match["before"])))


def _first_missing(path: Path) -> Path:
    """The topmost part of a path that does not exist; the path itself if it exists."""
    for part in (*reversed(path.parents), path):
        if not os.path.lexists(part):
            return part
    return path


def _mounts_seen_by(diagnosis: Diagnosis, started: Start, mounts: Path) -> str:
    """The list of mounts; empty if the failure was on another machine or in a container."""
    if diagnosis.root is not None and not is_here(diagnosis.root.host, started):
        return ""
    with suppress(OSError):
        return mounts.read_text("utf-8", "replace")
    return ""


def _named(diagnosis: Diagnosis, started: Start) -> Iterator[PurePath]:
    """The files that the failure is about: those it names, the module that raised it; else those of
    the job's directory.
    """
    texts = [*_texts(diagnosis), *(frame.code for frame in diagnosis.stack[-1:])]
    found = [PurePath(path) for text in texts for path in _PATH.findall(text)]
    found.extend(PurePath(frame.file) for frame in diagnosis.stack[-1:] if frame.file[:1] == "/")
    yield from found or [PurePath(started.folder)]


def _texts(diagnosis: Diagnosis) -> list[str]:
    """What the failure says."""
    messages = [diagnosis.root.text] if diagnosis.root else []
    return messages + ([diagnosis.exception.message] if diagnosis.exception else [])


def _mount(path: PurePath, listed: str) -> tuple[str, str]:
    """Type and source of the file system that holds a path; empty if it is unknown."""
    best, kind, source = "", "", ""
    for line in listed.splitlines():
        head, _, tail = line.partition(" - ")
        fields = head.split(" ")
        if len(fields) < 5 or not tail:
            continue
        # The kernel writes a space in a path as \040.
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        if len(point) >= len(best) and path.is_relative_to(point):
            best = point
            kind, source = [*tail.split(" "), ""][:2]
    return kind, source


def _is_network(kind: str) -> bool:
    return kind in _NETWORK or _NETWORK_FUSE.fullmatch(kind) is not None
