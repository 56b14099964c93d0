"""Whether a failure is about files on a network file system: other machines change them, and it can lag
behind or fail for a minute, so that what an attempt did not find or could not read may be right the next time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    if diagnosis.root is not None and not is_here(diagnosis.root.host, started):
        return ""
    try:
        listed = mounts.read_text("utf-8", "replace")
    except OSError:
        return ""
    for path in _named(diagnosis, started):
        if source := _source(path, listed):
            return source
    return ""


def _named(diagnosis: Diagnosis, started: Started) -> Iterator[PurePath]:
    """The files that the failure is about: those it names, the module that raised it; else those of
    the job's directory.
    """
    texts = [diagnosis.root.text] if diagnosis.root else []
    if diagnosis.exception:
        texts.append(diagnosis.exception.message)
    texts.extend(frame.code for frame in diagnosis.stack[-1:])
    found = [PurePath(path) for text in texts for path in _PATH.findall(text)]
    found.extend(PurePath(frame.file) for frame in diagnosis.stack[-1:] if frame.file[:1] == "/")
    yield from found or [PurePath(started.folder)]


def _source(path: PurePath, listed: str) -> str:
    """The source of the network file system that holds a path; empty for a local one."""
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
    return source if kind in _NETWORK or _NETWORK_FUSE.fullmatch(kind) else ""
