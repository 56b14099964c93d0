"""Common GPUs, and the requirements of drivers and CUDA releases, for rules and target files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from epochzero.check.target.model import GPU
from epochzero.errors import InputError

MOST_GPUS = 1024
_SHORT = re.compile(r"(?:(?P<count>\d{1,4})\s*[x×*]\s*)?(?P<name>\S.*)", re.IGNORECASE)
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Cuda:
    """CUDA releases, by their version ``12.4``.

    Attributes:
        driver: the driver that was released with it.
        minor_compatibility: by major version, the oldest driver that runs programs built with any of its releases.
        architectures: by compute capability, the first release that builds for it and the last one, or None.
    """

    driver: Mapping[str, str]
    minor_compatibility: Mapping[str, str]
    architectures: Mapping[str, tuple[str, str | None]]


def _load(name: str) -> dict[str, dict[str, object]]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


@cache
def presets() -> Mapping[str, GPU]:
    """Common GPUs by their usual names (``A100 80GB``)."""
    found = {}
    for name, entry in _load("gpus.toml").items():
        memory = entry["memory_mib"]
        assert isinstance(memory, int)
        known = entry.get("capability")
        found[name] = GPU(
            str(entry["model"]), memory * _MIB, capability_of(str(known)) if known else None
        )
    return MappingProxyType(found)


@cache
def cuda() -> Cuda:
    """The tables of CUDA releases."""
    entry = _load("cuda.toml")
    return Cuda(
        MappingProxyType({key: str(value) for key, value in entry["driver"].items()}),
        MappingProxyType({key: str(value) for key, value in entry["minor_compatibility"].items()}),
        MappingProxyType(
            {
                key: (value["first"], value.get("last"))
                for key, value in entry["architecture"].items()
                if isinstance(value, dict)
            }
        ),
    )


def version(text: str) -> tuple[int, ...]:
    """The numbers of a version, for comparison.

    >>> version("550.54.15") > version("525.60.13")
    True
    """
    return tuple(int(number) for number in re.findall(r"\d+", text.split("+")[0]))


def capability_of(text: str) -> tuple[int, int]:
    """The compute capability of ``9.0``, ``sm_90`` or ``compute_90a``.

    Raises:
        ValueError: the text has another form.

    >>> capability_of("sm_100")
    (10, 0)
    """
    found = re.fullmatch(r"(\d{1,2})\.(\d)|(?:sm|compute)_(\d{1,2})(\d)[af]?", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a compute capability such as 9.0 or sm_90")
    major, minor = (part for part in found.groups() if part is not None)
    return int(major), int(minor)


def oldest_driver(release: str) -> str | None:
    """The oldest driver that runs programs built with a CUDA release; None if unknown.

    From CUDA 11 on, any driver of the same major version does.

    >>> oldest_driver("12.4")
    '525.60.13'
    """
    table = cuda()
    return table.minor_compatibility.get(release.split(".")[0], table.driver.get(release))


def first_cuda(capability: tuple[int, int]) -> str | None:
    """The first CUDA release that builds for a compute capability; None if unknown."""
    found = cuda().architectures.get(".".join(map(str, capability)))
    return found[0] if found else None


def last_cuda(capability: tuple[int, int]) -> str | None:
    """The last CUDA release that builds for a compute capability; None if there is no last one or it is unknown."""
    found = cuda().architectures.get(".".join(map(str, capability)))
    return found[1] if found else None


def gpus_of(text: str) -> tuple[GPU, ...]:
    """The GPUs of a short form: ``8 x H100``, ``A100 80GB``, ``none``.

    Raises:
        InputError: it names no preset, or too many GPUs.
    """
    if text.strip().lower() in {"none", "0"}:
        return ()
    found = _SHORT.fullmatch(text.strip())
    wanted = _plain(found["name"]) if found else ""
    for name, gpu in presets().items():
        if wanted in (_plain(name), _plain(gpu.model)):
            count = int(found["count"] or 1) if found else 0
            if not 0 < count <= MOST_GPUS:
                raise InputError(f"{text!r}: 1 to {MOST_GPUS} GPUs can be specified")
            return (gpu,) * count
    from difflib import get_close_matches

    names = {_plain(name): name for name in presets()}
    near = get_close_matches(wanted, names, n=3)
    hint = f"; did you mean {', '.join(names[n] for n in near)}?" if near else "."
    raise InputError(
        f"unknown GPU {text!r}{hint} `epochzero target presets` lists the known ones; describe others"
        " in a target file, under [[gpus]]"
    )


def _plain(name: str) -> str:
    """The normalized form of a GPU name: ``nvidia-a100-40gb`` and ``A100`` are equal."""
    text = re.sub(r"[^a-z0-9]", "", name.lower())
    for word in ("nvidia", "geforce", "tesla", "amd", "instinct", "sxm2", "sxm4", "sxm5", "sxm"):
        text = text.replace(word, "")
    usual = {"v10016gb": "v100", "a10040gb": "a100", "h10080gb": "h100", "p100pcie16gb": "p100",
             "h10080gbhbm3": "h100", "p10016gb": "p100"}  # fmt: skip
    return usual.get(text, text)
