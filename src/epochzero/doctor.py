"""What of EpochZero works on this machine, and what to install for the rest."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from epochzero import platform

State = Literal["works", "limited", "missing"]

_EXTRAS = (
    ("list of jobs", "store", ("sqlalchemy", "alembic")),
    ("bug localization", "locate", ("numpy", "Stemmer", "tree_sitter_python")),
    ("watching trainings", "watch", ("numpy",)),
    ("data sets", "data", ("numpy", "PIL", "pyarrow")),
    ("team server", "serve", ("fastapi", "uvicorn", "jinja2")),
    ("studies", "study", ("matplotlib", "pyarrow", "scipy")),
    ("PostgreSQL", "postgres", ("psycopg",)),
    ("coding agents", "mcp", ("mcp",)),
    ("trained models", "models", ("epochzero_models",)),
    ("Ray", "ray", ("ray",)),
)
"""What an extra adds, its name, and the modules that it installs."""


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that EpochZero can do.

    Attributes:
        name: in a few words.
        state: ``works``; ``limited``, if less than elsewhere; or ``missing``.
        text: what was found, a sentence.
        advice: what to do to get more; empty if nothing is needed or possible.
    """

    name: str
    state: State
    text: str
    advice: str = ""


def capabilities(environment: Mapping[str, str], homes: Sequence[Path]) -> Iterator[Capability]:
    """Inspect this machine. Nothing is changed; programs that are asked have four seconds to answer.

    Args:
        environment: of the jobs.
        homes: directories in which jobs may be stored, the preferred one first.
    """
    version = ".".join(map(str, sys.version_info[:3]))
    cpus = platform.usable_cpus()
    text = f"{platform.NAME}, Python {version}, {cpus} usable CPU{'s' if cpus != 1 else ''}."
    yield Capability("system", "works", text)
    yield _jobs(homes)
    yield _dry_run()
    yield _torch()
    yield _gpus(environment)
    yield _stacks()
    git = shutil.which("git", path=environment.get("PATH"))
    if git:
        yield Capability("git", "works", f"{git}.")
    else:
        advice = "Install git for locate, study import and reviews."
        yield Capability("git", "missing", "git was not found on PATH.", advice)
    yield from map(_extra, *zip(*_EXTRAS, strict=True))


def _jobs(homes: Sequence[Path]) -> Capability:
    if platform.WHY_NO_JOBS:
        return Capability("running jobs", "missing", f"{platform.WHY_NO_JOBS}.")
    home = next((home for home in homes if os.access(_nearest(home), os.W_OK)), None)
    if home is None:
        advice = "Set EPOCHZERO_HOME to a directory that you may write to."
        return Capability("running jobs", "missing", f"{homes[0]} cannot be written.", advice)
    free = shutil.disk_usage(_nearest(home)).free / 2**30
    if not platform.ADOPTS_ORPHANS:
        text = f"Jobs are stored in {home}; processes that leave their session are not found."
        return Capability("running jobs", "limited", text)
    return Capability("running jobs", "works", f"Jobs are stored in {home}, {free:.0f} GiB free.")


def _nearest(path: Path) -> Path:
    """The path, or the nearest directory above it that exists."""
    return next(parent for parent in (path, *path.parents) if parent.is_dir())


def _dry_run() -> Capability:
    if platform.NAME == "Windows":
        return Capability("dry runs", "missing", "They require Linux or macOS.", "Use WSL.")
    from epochzero.check.dryrun.contain import best_containment

    found = best_containment()
    text = f"Jobs are isolated by {found.description}."
    if not found.leaks:
        return Capability("dry runs", "works", text)
    is_refused = found.reason and platform.NAME == "Linux"
    advice = "Allow user namespaces (unprivileged_userns_clone)." if is_refused else ""
    return Capability("dry runs", "limited", f"{text} {found.leaks}", advice)


def _torch() -> Capability:
    if find_spec("torch") is None:
        text = "PyTorch is not installed in this Python; a job's own Python may have it."
        advice = "pip install 'epochzero[torch]', for dry runs in this Python."
        return Capability("simulated GPUs", "limited", text, advice)
    from importlib.metadata import version

    return Capability("simulated GPUs", "works", f"PyTorch {version('torch')}.")


def _gpus(environment: Mapping[str, str]) -> Capability:
    from epochzero.check.target.system import gpus

    found = gpus(environment)
    if not found.gpus:
        text = "nvidia-smi lists no GPU on this machine; no command requires one."
        return Capability("GPU samples", "missing", text)
    names = ", ".join(gpu.model for gpu in found.gpus)
    if find_spec("pynvml") is None:
        advice = "pip install 'epochzero[gpu]', to sample them while jobs run."
        return Capability("GPU samples", "missing", f"{names}.", advice)
    return Capability("GPU samples", "works", f"{names}; driver {found.driver}.")


def _stacks() -> Capability:
    if shutil.which("py-spy") or Path(sys.executable).with_name("py-spy").is_file():
        return Capability("stacks of hangs", "works", "py-spy is installed.")
    text = "Without py-spy, Python processes of a job write their stacks themselves."
    return Capability("stacks of hangs", "limited", text, "pip install 'epochzero[stacks]'.")


def _extra(name: str, extra: str, modules: Sequence[str]) -> Capability:
    absent = [module for module in modules if find_spec(module) is None]
    if not absent:
        return Capability(name, "works", f"The extra {extra} is installed.")
    text = f"Not installed: {', '.join(absent)}."
    return Capability(name, "missing", text, f"pip install 'epochzero[{extra}]'.")
