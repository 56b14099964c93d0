"""No file is written outside one folder, and no signal leaves: Landlock, where Linux has it.

It holds for compiled code too, and needs no rights. Source: landlock(7); the kernel's documentation,
userspace-api/landlock.rst.
"""

from __future__ import annotations

import os
import struct

from epochzero.injected import system

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_WRITES = 0b1_1111_1111_0010  # write a file, remove, make: bits 1 and 4 to 12
_REFER = 1 << 13  # since version 2
_TRUNCATE = 1 << 14  # since version 3
_ON_FILES = 1 << 1 | _TRUNCATE
_SCOPE_SIGNAL = 2  # since version 6
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/shm", "/dev/pts", "/dev/ptmx")


def version() -> int:
    """The version of Landlock that the kernel offers, 0 for none."""
    try:
        return system.invoke(_CREATE, None, 0, _ASK_VERSION)
    except OSError:
        return 0


def confine(folder: str) -> None:
    """Let this process and its children write below a folder only.

    Raises:
        OSError: the kernel refuses.
    """
    offered = version()
    handled = _WRITES | (_REFER if offered >= 2 else 0) | (_TRUNCATE if offered >= 3 else 0)
    attributes = struct.pack("=3Q", handled, 0, _SCOPE_SIGNAL)
    known = attributes if offered >= 6 else attributes[:8]
    rules = system.invoke(_CREATE, known, len(known), 0)
    for path in (folder, *(path for path in _DEVICES if os.path.exists(path))):
        place = os.open(path, os.O_PATH)
        allowed = handled if os.path.isdir(path) else handled & _ON_FILES
        system.invoke(_ADD, rules, _PATH_BENEATH, struct.pack("=Qi", allowed, place), 0)
        os.close(place)
    system.invoke(_RESTRICT, rules, 0)
    os.close(rules)
