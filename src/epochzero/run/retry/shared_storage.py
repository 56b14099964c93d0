"""Whether a failure is about files on a network file system, which other machines change and which can lag behind or
fail for a minute, or about files that only this node can change: a misspelt path is still misspelt after a minute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath

from epochzero.diagnose import Diagnosis
from epochzero.run.records.model import Started
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
_ABOUT_FILES = ("path_not_found", "permission_denied", "library_not_found")
# Of Python itself: "can't open file '/job/trian.py': [Errno 2] ..."
_QUOTED = re.compile(
    r"\[Errno \d+\][^'\"\n]*['\"](?P<after>[^'\"\n]+)['\"]|open file ['\"](?P<before>[^'\"\n]+)['\"]: \[Errno"
)
_PATH = re.compile(r"(?<![\w./:])/(?:[\w.@+=%~-]+/)+[\w.@+=%~-]+")
_MOUNTS = Path("/proc/self/mountinfo")


def shared_storage(diagnosis: Diagnosis, started: Started, mounts: Path = _MOUNTS) -> str:
    """The source of the network file system with the failure's files, such as ``server:/export``.

    Empty if they are on none, or if it is unknown.

    Args:
        diagnosis: of the attempt.
        started: its first record.
        mounts: the kernel's list of mounts.
    """
    listed = _mounts_seen_by(diagnosis, started, mounts)
    for path in _named(diagnosis, started):
        kind, source = _mount(path, listed)
        if _is_network(kind):
            return source
    return ""


def local_files(diagnosis: Diagnosis, started: Started, mounts: Path = _MOUNTS) -> str:
    """The path that a failure is about if it is on a file system of this node; empty if it is not, or unknown.

    Args:
        diagnosis: of the attempt.
        started: its first record.
        mounts: the kernel's list of mounts.
    """
    if diagnosis.category not in _ABOUT_FILES:
        return ""
    named = [match for text in _texts(diagnosis) for match in _QUOTED.finditer(text)]
    found = [PurePath(started.folder, match["after"] or match["before"]) for match in named]
    if (
        diagnosis.category == "library_not_found"
    ):  # The module that imports it is in the same environment.
        found += [PurePath(started.folder, frame.file) for frame in diagnosis.stack[-1:]]
    listed = _mounts_seen_by(diagnosis, started, mounts)
    kinds = [_mount(path, listed)[0] for path in found]
    return str(found[0]) if kinds and all(kinds) and not any(map(_is_network, kinds)) else ""


def _mounts_seen_by(diagnosis: Diagnosis, started: Started, mounts: Path) -> str:
    """The list of mounts; empty if the failure was on another machine or in a container."""
    if diagnosis.root is not None and not is_here(diagnosis.root.host, started):
        return ""
    with suppress(OSError):
        return mounts.read_text("utf-8", "replace")
    return ""


def _named(diagnosis: Diagnosis, started: Started) -> Iterator[PurePath]:
    """The files that the failure is about: those it names, the module that raised it; else those of
    the job's directory.
    """
    texts = [*_texts(diagnosis), *(frame.code for frame in diagnosis.stack[-1:])]
    found = [PurePath(path) for text in texts for path in _PATH.findall(text)]
    found.extend(PurePath(frame.file) for frame in diagnosis.stack[-1:] if frame.file[:1] == "/")
    yield from found or [PurePath(started.folder)]


def _texts(diagnosis: Diagnosis) -> list[str]:
    """What the failure says."""
    said = [diagnosis.root.text] if diagnosis.root else []
    return said + ([diagnosis.exception.message] if diagnosis.exception else [])


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
