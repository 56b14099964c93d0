"""How the installed torch was built, without importing it."""

from __future__ import annotations

import ast
import mmap
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TorchBuild", "torch_build"]

LARGEST_LIBRARY_BYTES = 4 << 30
# torch keeps the architectures that it was built for as one text (torch.cuda.get_arch_list).
_ARCHITECTURES = re.compile(rb"\0((?:(?:sm|compute)_\d{2,3}[af]? ?){2,20})\0")


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """A build of torch.

    Attributes:
        cuda: CUDA version that it was built with; empty for a build without.
        architectures: that it was built for; None when they cannot be read.
    """

    cuda: str
    architectures: tuple[str, ...] | None


def torch_build(path: Sequence[str]) -> TorchBuild | None:
    """The build of the torch in these folders; None when there is none or it does not say.

    ``torch/version.py`` says the CUDA version; the architectures are a text in the library.
    """
    for folder in path:
        root = Path(folder) / "torch"
        if (root / "version.py").is_file():
            said = _constants((root / "version.py").read_text("utf-8", "replace"))
            if "cuda" not in said or said.get("hip"):
                return None
            cuda = said["cuda"] or ""
            return TorchBuild(cuda, _architectures(root / "lib") if cuda else ())
    return None


def _constants(text: str) -> dict[str, str | None]:
    """Names that a module sets to a text or None."""
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
    library = folder / "libtorch_cuda.so"
    if not library.is_file() or not 0 < library.stat().st_size <= LARGEST_LIBRARY_BYTES:
        return None
    with (
        library.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        # The text starts with an architecture; looking for plain bytes costs little even in 2 GB.
        at = data.find(b"\0sm_")
        while at >= 0:
            if found := _ARCHITECTURES.match(data, at, at + 400):
                return tuple(found[1].decode().split())
            at = data.find(b"\0sm_", at + 1)
    return None
