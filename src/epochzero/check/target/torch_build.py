"""How the installed torch was built, without importing it."""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

LARGEST_SECTION_BYTES = 1 << 30
_PIECE_BYTES = 1 << 20
_LONGEST_TEXT = 400
# The 64-bit header and section headers of the System V ABI, "Object Files".
_HEADER = struct.Struct("<4sBB34xQ10xHHH")
"""Magic, class, byte order; offset of the section headers, size of each, number, which has the names."""
_SECTION = struct.Struct("<I20xQQ24x")
"""Offset of the name; offset and size of the section."""
# torch stores the architectures that it was built for as one text (torch.cuda.get_arch_list).
_ARCHITECTURES = re.compile(rb"\0((?:(?:sm|compute)_\d{2,3}[af]? ?){2,20})\0")


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """A build of torch.

    Attributes:
        cuda: CUDA version that it was built with; empty for a CPU build.
        architectures: architectures that it was built for; None if they cannot be read.
    """

    cuda: str
    architectures: tuple[str, ...] | None


def torch_build(path: Sequence[str]) -> TorchBuild | None:
    """The build of the torch in these directories; None if there is none or it is unknown.

    ``torch/version.py`` has the CUDA version; the architectures are a text in the library.
    """
    for folder in path:
        root = Path(folder) / "torch"
        if (root / "version.py").is_file():
            constants = _constants((root / "version.py").read_text("utf-8", "replace"))
            if "cuda" not in constants or constants.get("hip"):
                return None
            cuda = constants["cuda"] or ""
            return TorchBuild(cuda, _architectures(root / "lib") if cuda else ())
    return None


def _constants(text: str) -> dict[str, str | None]:
    """Names to which a module assigns a text or None."""
    found: dict[str, str | None] = {}
    for node in ast.parse(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
                found[target.id] = value.value if isinstance(value.value, str) else None
    return found


def _architectures(folder: Path) -> tuple[str, ...] | None:
    """The text with the architectures, from the constants of the library.

    The library has gigabytes, nearly all of them kernels. Only its constants are read, in pieces, since mapped parts of a file
    count as memory of the process for a scheduler.
    """
    try:
        with (folder / "libtorch_cuda.so").open("rb", buffering=0) as library:
            for offset, size in _sections(library, b".rodata"):
                if found := _found(library, offset, min(size, LARGEST_SECTION_BYTES)):
                    return found
    except (OSError, struct.error):  # missing or cut off
        return None
    return None


def _sections(library: BinaryIO, name: bytes) -> Iterator[tuple[int, int]]:
    """Offset and size of the sections of an ELF file whose names begin so."""
    *kind, at, entry_size, count, names = _HEADER.unpack(library.read(_HEADER.size))
    if kind != [b"\x7fELF", 2, 1] or entry_size != _SECTION.size:  # 64 bits, little-endian
        return
    library.seek(at)
    sections = list(_SECTION.iter_unpack(library.read(entry_size * count)))
    if names >= len(sections):
        return
    _, offset, size = sections[names]
    library.seek(offset)
    texts = library.read(min(size, _PIECE_BYTES))
    for start, offset, size in sections:
        if texts.startswith(name, start):
            yield offset, size


def _found(library: BinaryIO, offset: int, size: int) -> tuple[str, ...] | None:
    """The architectures that a part of the library names."""
    library.seek(offset)
    before = b""
    while size > 0 and (piece := library.read(min(size, _PIECE_BYTES))):
        size -= len(piece)
        data = before + piece
        # The text starts with an architecture; searching for plain bytes is cheap.
        at = data.find(b"\0sm_")
        while at >= 0:
            if found := _ARCHITECTURES.match(data, at, at + _LONGEST_TEXT):
                return tuple(found[1].decode().split())
            at = data.find(b"\0sm_", at + 1)
        before = data[-_LONGEST_TEXT:]
    return None
