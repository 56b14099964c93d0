"""Builds of libraries against the platform's GPUs, driver and shared libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from epochzero.check.program.events import LibraryCall, LibraryImport, Situation, argument
from epochzero.check.program.model import Program
from epochzero.check.program.values import Instance, Value, constant_of
from epochzero.check.tables import read_table
from epochzero.check.target.model import Target

_ARCHITECTURE = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")
_LAUNCHES_CUDA = frozenset(
    {"lightning", "pytorch_lightning", "transformers", "accelerate", "deepspeed"}
)
Reason = str


@dataclass(frozen=True, slots=True)
class NeededLibraries:
    """Shared libraries that a module of a distribution loads.

    Attributes:
        module: the module.
        distribution: normalized name of its distribution.
        needs: groups of libraries; one of each group must exist.
        packages: system packages that provide them.
        source: documentation.
        unless: a distribution that bundles them; empty if there is none.
        within: the module whose import loads them; empty if any import does.
    """

    module: str
    distribution: str
    needs: tuple[tuple[str, ...], ...]
    packages: str
    source: str
    unless: str = ""
    within: str = ""


@cache
def needed_libraries() -> Mapping[str, NeededLibraries]:
    """The shared libraries that modules load, by module."""
    table = read_table(__package__, "shared_libraries.toml")
    return MappingProxyType(
        {
            module: NeededLibraries(module, needs=tuple(map(tuple, entry.pop("needs"))), **entry)
            for module, entry in table.items()
        }
    )


def first_import(program: Program, module: str) -> LibraryImport | None:
    """The first import of a top-level module or of a part of it."""
    inside = f"{module}."
    found = (imported for imported in program.imports if (imported.module + ".").startswith(inside))
    return next(found, None)


def wants_cuda(program: Program) -> bool:
    """Whether the job mentions CUDA, or uses a framework that selects GPUs itself."""
    if any("cuda" in module.text for module in program.modules.values()):
        return True
    return any(imported.module.partition(".")[0] in _LAUNCHES_CUDA for imported in program.imports)


def lacks_cuda(target: Target) -> Reason:
    """Why the target cannot use a GPU; empty if it can, or if that is unknown."""
    torch = (target.distributions or {}).get("torch")
    if target.cuda_of_torch == "" or (torch is not None and torch.version.endswith("+cpu")):
        return "its PyTorch is a build for CPUs"
    if target.gpus == ():
        return "it has no GPU"
    return ""


def device_named(value: Value | None) -> str:
    """The device of a value: ``cuda`` for ``"cuda:0"`` or ``torch.device("cuda", 0)``."""
    if isinstance(value, Instance) and value.made_by == "torch.device":
        value = argument(value, 0, "type")
    name = constant_of(value)
    return name.partition(":")[0] if isinstance(name, str) else ""


def moves_to_cuda(program: Program) -> Iterator[LibraryCall]:
    """Calls that move something to a GPU."""
    for call in program.calls:
        method = call.name.rpartition(".")[2]
        first = call.arguments[0] if call.arguments else None
        if method == "cuda" and call.receiver is not None:
            if device_named(first) in ("", "cuda"):
                yield call
        elif (
            call.name in ("torch.cuda.set_device", "torch.cuda.get_device_properties")
            or (method == "to" and call.receiver is not None and device_named(first) == "cuda")
            or (
                call.name.startswith("torch.")
                and device_named(call.keywords.get("device")) == "cuda"
            )
        ):
            yield call


def first_on_cuda(program: Program) -> Situation | None:
    """Where the job first moves something to a GPU, certain places first; None if it never does."""
    moves = sorted((call.at for call in moves_to_cuda(program)), key=lambda at: not at.certain)
    return moves[0] if moves else None


def lowest_capability(target: Target) -> tuple[int, int] | None:
    """The lowest compute capability of the GPUs; None if one is unknown."""
    found = [gpu.capability for gpu in target.gpus or ()]
    known = [capability for capability in found if capability is not None]
    return min(known) if known and len(known) == len(found) else None


def runs_on(architectures: tuple[str, ...], capability: tuple[int, int]) -> bool:
    """Whether code that was built for some architectures runs on a GPU.

    Binary code runs on the same major version from its minor version on, PTX on all later GPUs; code for ``sm_90a`` runs only on
    9.0, code for ``sm_100f`` on its family (NVIDIA, CUDA C++ Programming Guide, compute capability and binary compatibility).
    """
    for text in architectures:
        found = _ARCHITECTURE.fullmatch(text.strip())
        if found is None:
            return True
        built = int(found[2]), int(found[3])
        if found[4] == "a":
            fits = built == capability
        elif found[1] == "compute" and not found[4]:
            fits = capability >= built
        else:
            fits = capability[0] == built[0] and capability[1] >= built[1]
        if fits:
            return True
    return False
