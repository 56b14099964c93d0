"""Installed distributions are incompatible.

Their requirements come from their own metadata, and from a table next to this file for package
lists without metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from epochzero.check.program.events import LibraryImport
from epochzero.check.rule import Claim, Claims, JobView, Rule, Target, claim_at, guarded
from epochzero.check.rules.distributions import Installed, applies, providers, requirements
from epochzero.check.tables import read_table
from epochzero.check.target.model import Distribution
from epochzero.check.target.packages import normalized

if TYPE_CHECKING:
    from packaging.requirements import Requirement


# Compiled against one version of torch, whose symbols they look up at import.
_BOUND_TO_TORCH = {"torchvision", "torchaudio", "torchtext", "xformers"}

# Local versions of extensions that are compiled for one torch, by the names of their wheels: 2.7.4+cu12torch2.5cxx11abiFALSE
# (releases of flash-attention and mamba), 2.1.2+pt24cu121 (PyTorch Geometric).
_BUILT_FOR = re.compile(r"\+(?:.*torch(?=\d+\.)|pt(?=\d\d+cu))(\d)\.?(\d+?)(?=cu|cxx|\D|$)")

_CUDA = re.compile(r"\+cu(\d\d)(\d)$")

_ASKED_AT_IMPORT = {
    "transformers": frozenset(
        {"tqdm", "regex", "requests", "packaging", "filelock", "numpy", "tokenizers",
         "huggingface-hub", "safetensors", "accelerate", "pyyaml"}
    ),
    "diffusers": frozenset({"requests", "filelock", "numpy", "huggingface-hub"}),
}  # fmt: skip
"""Distributions that check the versions of others when they are imported, and fail if they are
wrong: ``transformers/dependency_versions_check.py``.
"""


@cache
def _table() -> Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]:
    """The rows of the table, by their part and the name of the distribution."""
    parts = read_table(__package__, "requirement_conflict.toml")
    for pair in parts.pop("pair"):
        for mine, theirs in pair["versions"].items():
            needs = f"{pair['with']}=={theirs}.*"
            parts["need"].append({**pair, "versions": f"=={mine}.*", "needs": needs})
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for part, rows in parts.items():
        for row in rows:
            found.setdefault((part, row["name"]), []).append(row)
    return MappingProxyType(found)


def _rows(part: str, distribution: Distribution) -> Iterator[Mapping[str, Any]]:
    """The rows of a part of the table that hold for a distribution.

    Pre-releases have none: images contain pre-releases that were built for each other.
    """
    from packaging.specifiers import SpecifierSet

    version = _version(distribution)
    for row in _table().get((part, normalized(distribution.name)), ()):
        if version and SpecifierSet(row["versions"]).contains(version, prereleases=False):
            yield row


def _known(distribution: Distribution) -> Iterator[tuple[Requirement, str]]:
    """The requirements of a distribution in the table, each with its error."""
    from packaging.requirements import Requirement

    version = _version(distribution)
    for row in _rows("need", distribution):
        yield Requirement(row["needs"].replace("{version}", str(version))), row.get("error", "")
    if built := _BUILT_FOR.search(distribution.version):
        error = f"ImportError: {distribution.name}: undefined symbol, since torch is not {built[1]}.{built[2]}"
        yield Requirement(f"torch=={built[1]}.{built[2]}.*"), error
    if "cxx11abiFALSE" in distribution.version:
        # PyTorch 2.7.0, release notes: its wheels are built with CXX11_ABI=1.
        yield Requirement("torch<2.7"), f"ImportError: {distribution.name}: undefined symbol"


def _version(distribution: Distribution) -> Version | None:
    """The version without its local part after ``+``; None if it cannot be parsed."""
    try:
        return Version(distribution.version.partition("+")[0])
    except InvalidVersion:
        return None


def _required(distribution: Distribution) -> Iterator[Requirement]:
    """All requirements of a distribution: those of its metadata, and those that only the table has."""
    own = requirements(distribution)
    names = {normalized(requirement.name) for requirement in own}
    yield from own
    yield from (fact for fact, _ in _known(distribution) if normalized(fact.name) not in names)


def _check(view: JobView) -> Claims:
    if view.target.distributions is None:
        return
    installed: Installed = {
        normalized(n): distribution for n, distribution in view.target.distributions.items()
    }
    if "pytorch" in installed:  # its name in conda
        installed = {"torch": installed["pytorch"], **installed}
    if view.target.python is not None:
        python = ".".join(map(str, view.target.python))
        installed = {**installed, "python": Distribution("Python", python)}
    replaced = " ".join(install.text for install in view.job.launch_script.installs)
    seen: set[str] = set()
    for event in view.imports:
        if guarded(event.at, ImportError):
            continue
        for first in providers(event.module.partition(".")[0], installed):
            for needed in _needed(first, installed, view.target, event, seen):
                if needed.name not in replaced:
                    yield from _unmet(needed, installed, view.target, event)
                    yield from _other_cuda(needed, installed, view.target, event)


def _needed(
    first: Distribution,
    installed: Installed,
    target: Target,
    event: LibraryImport,
    seen: set[str],
) -> Iterator[Distribution]:
    """A distribution and all that it requires or imports, without those that were visited before."""
    waiting = [first]
    while waiting:
        distribution = waiting.pop()
        name = normalized(distribution.name)
        if name in seen:
            continue
        seen.add(name)
        yield distribution
        for requirement in _required(distribution):
            needed = installed.get(normalized(requirement.name))
            if needed is not None and applies(requirement, target):
                waiting.append(needed)
        for row in _rows("imports", distribution):
            names = event.names if distribution is first else ("",)
            if row["imports"] in installed and not all(re.match(row["not_by"], n) for n in names):
                waiting.append(installed[row["imports"]])


def _unmet(
    distribution: Distribution, installed: Installed, target: Target, event: LibraryImport
) -> Iterator[Claim]:
    for requirement in _required(distribution):
        other = installed.get(normalized(requirement.name))
        if other is None or not applies(requirement, target) or _met(requirement, other):
            continue
        asked = normalized(other.name) in _ASKED_AT_IMPORT.get(distribution.name, ())
        error = _error(distribution, requirement, other)
        yield claim_at(
            event.at,
            category="library_not_found" if asked else RULE.category,
            message=f"{distribution.name} {distribution.version} requires {requirement.name}{requirement.specifier}, "
            f"but the target has {other.name} {other.version}.",
            consequence=error
            or (
                f"ImportError, or a failure in {distribution.name} when it uses a missing feature of "
                f"{other.name}."
            ),
            fix=f"Install {requirement.name}{requirement.specifier}, or a version of {distribution.name} "
            f"that supports {other.name} {other.version}.",
            severity=None if error else "warning",
        )


def _other_cuda(
    distribution: Distribution, installed: Installed, target: Target, event: LibraryImport
) -> Iterator[Claim]:
    """A wheel that compares its version of CUDA with that of torch, and is built for another one."""
    theirs, built = target.cuda_of_torch, _CUDA.search(distribution.version)
    if not theirs or not built:
        return
    ours = ".".join(built.groups())
    for row in _rows("cuda", distribution):
        if ours.split(".")[: row["parts"]] != theirs.split(".")[: row["parts"]]:
            yield claim_at(
                event.at,
                message=f"{distribution.name} {distribution.version} was built for CUDA {ours}, but torch was built for CUDA {theirs}.",
                consequence=row["error"],
                fix="Install both from the same index, such as the index for "
                f"cu{''.join(theirs.split('.')[:2])}.",
            )


def _error(first: Distribution, requirement: Requirement, second: Distribution) -> str:
    """How the import certainly ends; empty if it may succeed."""
    if normalized(second.name) in _ASKED_AT_IMPORT.get(first.name, ()):
        return (
            f"ImportError: {requirement.name}{requirement.specifier} is required for a normal "
            f"functioning of this module, but found {second.name}=={second.version}."
        )
    for fact, error in _known(first):
        if normalized(fact.name) == normalized(second.name) and not _met(fact, second):
            return error.format(version=first.version, other=second.version)
    if first.name in _BOUND_TO_TORCH and second.name == "torch":
        return f"Importing {first.name} fails: an operator or symbol of torch is missing."
    return ""


def _met(requirement: Requirement, other: Distribution) -> bool:
    version = _version(other)
    return version is None or requirement.specifier.contains(version, prereleases=True)


RULE = Rule(
    category="framework_api_misuse",
    why="Images are often built in layers. A later upgrade or `pip install --no-deps` can leave "
    "versions that violate the requirements of a library. The error appears only when the library "
    "uses a feature that the installed version lacks.",
    fix="Install compatible versions. Run `pip check` in the image to list the conflicts.",
    source="Zhang et al., ICSE 2020, section 5.3: Keras 2.2.2 on TensorFlow 1.3; pip's documentation "
    "of `pip check`",
    check=_check,
    examples="""
        import os
        import torchvision  # <-
        ==> target.toml <==
        [distributions.torch]
        version = "2.12.0"
        modules = ["torch"]
        [distributions.torchvision]
        version = "0.29.2"
        modules = ["torchvision"]
        requires = ["torch==2.13.0"]
        ---- ignored if
        -import os
        -import torchvision
        +import json
        ----
        import flash_attn  # <-
        ==> target.toml <==
        [distributions]
        torch = "2.4.1"
        flash-attn = "2.7.4.post1+cu12torch2.5cxx11abiFALSE"
        ---- caught if
        -torch = "2.4.1"
        -flash-attn = "2.7.4.post1+cu12torch2.5cxx11abiFALSE"
        +torch = "2.7.1"
        +flash-attn = "2.8.0+cu12torch2.7cxx11abiFALSE"
        ----
        import torch  # <-
        ==> target.toml <==
        [distributions]
        torch = "2.8.0+cu128"
        nvidia-nccl-cu12 = "2.26.2"
        ---- ignored if
        -nvidia-nccl-cu12 = "2.26.2"
        +nvidia-nccl-cu12 = "2.27.3"
        ----
        import torchvision  # <-
        ==> target.toml <==
        [distributions]
        torch = "2.1.2+cu121"
        torchvision = "0.16.2+cu118"
        ---- ignored if
        -torchvision = "0.16.2+cu118"
        +torchvision = "0.16.2+cu124"
        ----
        from transformers import AutoTokenizer, Trainer  # <-
        ==> target.toml <==
        [distributions]
        torch = "2.10.0+cu130"
        torchaudio = "2.10.0+cu129"
        transformers = "5.20.0"
        ---- ignored if
        -from transformers import AutoTokenizer, Trainer
        +from transformers import AutoTokenizer, AutoConfig
        ---- ignored if
        -transformers = "5.20.0"
        +transformers = "5.13.0"
        ----
        import torchaudio  # <-
        ==> target.toml <==
        [distributions]
        torch = "2.12.0+cu130"
        torchaudio = "2.11.0+cu128"
        ---- caught if
        -torchaudio = "2.11.0+cu128"
        +torchaudio = "2.11.0+cu131"
        ---- ignored if
        -torchaudio = "2.11.0+cu128"
        +torchaudio = "2.11.1+cu131"
        ----
        from transformers import AutoModel  # <-
        ==> target.toml <==
        [distributions]
        transformers = "4.44.2"
        tokenizers = "0.21.0"
        ----
        import torch  # <-
        ==> target.toml <==
        python = "3.12.3"
        [distributions]
        torch = "2.1.2"
    """,
)
