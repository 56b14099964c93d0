"""Installed distributions that do not go together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from epochzero.check.findings import Finding, Unknown
from epochzero.check.program.events import Imported
from epochzero.check.program.model import Program
from epochzero.check.rules.base import Case, Rule
from epochzero.check.rules.distributions import Installed, applies, providers, requirements
from epochzero.check.rules.situation import finding_at, guarded
from epochzero.check.target.model import Distribution, Target
from epochzero.check.target.packages import normalized

if TYPE_CHECKING:
    from packaging.requirements import Requirement

__all__ = ["RULE"]

# Compiled against one version of torch, whose symbols they look up when they are imported.
_BOUND_TO_TORCH = {"torchvision", "torchaudio", "torchtext", "xformers"}

_ASKED_AT_IMPORT = {
    "transformers": frozenset(
        {"tqdm", "regex", "requests", "packaging", "filelock", "numpy", "tokenizers",
         "huggingface-hub", "safetensors", "accelerate", "pyyaml"}
    ),
    "diffusers": frozenset({"requests", "filelock", "numpy", "huggingface-hub"}),
}  # fmt: skip
"""Distributions that ask for the versions of others when they are imported, and end otherwise:
``transformers/dependency_versions_check.py``."""


def _check(program: Program, target: Target) -> Iterable[Finding | Unknown]:
    if target.distributions is None:
        return
    installed: Installed = {normalized(n): one for n, one in target.distributions.items()}
    replaced = " ".join(one.text for one in program.job.installs)
    seen: set[str] = set()
    for event in program.imports:
        if guarded(event.at, ImportError):
            continue
        for first in providers(event.module.partition(".")[0], installed):
            for one in _needed(first, installed, target, seen):
                if one.name not in replaced:
                    yield from _unmet(one, installed, target, event)


def _needed(
    first: Distribution, installed: Installed, target: Target, seen: set[str]
) -> Iterator[Distribution]:
    """A distribution and all that it needs, each that was not seen before."""
    waiting = [first]
    while waiting:
        one = waiting.pop()
        name = normalized(one.name)
        if name in seen:
            continue
        seen.add(name)
        yield one
        for requirement in requirements(one):
            needed = installed.get(normalized(requirement.name))
            if needed is not None and applies(requirement, target):
                waiting.append(needed)


def _unmet(
    one: Distribution, installed: Installed, target: Target, event: Imported
) -> Iterator[Finding]:
    for requirement in requirements(one):
        other = installed.get(normalized(requirement.name))
        if other is None or not applies(requirement, target) or _met(requirement, other):
            continue
        bound = one.name in _BOUND_TO_TORCH and other.name == "torch"
        asked = normalized(other.name) in _ASKED_AT_IMPORT.get(one.name, ())
        yield finding_at(
            event.at,
            RULE.id,
            "library_not_found" if asked else RULE.category,
            message=f"{one.name} {one.version} requires {requirement.name}{requirement.specifier}, "
            f"and the target has {other.name} {other.version}.",
            consequence=f"Importing {one.name} fails: an operator or symbol of torch is missing."
            if bound
            else f"ImportError: {requirement.name}{requirement.specifier} is required for a normal "
            f"functioning of this module, but found {other.name}=={other.version}."
            if asked
            else f"ImportError or a failure in {one.name} where it uses what {other.name} has not.",
            fix=f"Install {requirement.name}{requirement.specifier}, or a version of {one.name} for "
            f"{other.name} {other.version}.",
            severity=None if bound or asked else "warning",
        )


def _met(requirement: Requirement, other: Distribution) -> bool:
    try:
        return requirement.specifier.contains(Version(other.version), prereleases=True)
    except InvalidVersion:
        return True


RULE = Rule(
    id="requirement-conflict",
    title="Installed distributions do not go together",
    category="framework_api_misuse",
    why="Images are built in layers, and `pip install --no-deps` or a later upgrade leaves versions "
    "that contradict what a library asks for. It is told by nobody until the library uses what is "
    "not there.",
    fix="Install versions that go together; `pip check` in the image names them too.",
    source="Zhang et al., ICSE 2020, section 5.3: Keras 2.2.2 on TensorFlow 1.3; pip's documentation "
    "of `pip check`",
    check=_check,
    catches=(
        Case(
            {"train.py": "import os\nimport torchvision\n"},
            target=(
                '[distributions.torch]\nversion = "2.12.0"\nmodules = ["torch"]\n'
                '[distributions.torchvision]\nversion = "0.29.2"\nmodules = ["torchvision"]\n'
                'requires = ["torch==2.13.0"]\n'
            ),
            line=2,
        ),
        Case(
            {"train.py": "import transformers\n"},
            target=(
                '[distributions.tokenizers]\nversion = "0.21.0"\nmodules = ["tokenizers"]\n'
                '[distributions.transformers]\nversion = "4.44.2"\nmodules = ["transformers"]\n'
                'requires = ["tokenizers<0.20,>=0.19"]\n'
            ),
            line=1,
        ),
    ),
    leaves=(
        Case(
            {"train.py": "import transformers\n"},
            target=(
                '[distributions.tokenizers]\nversion = "0.19.1"\nmodules = ["tokenizers"]\n'
                '[distributions.transformers]\nversion = "4.44.2"\nmodules = ["transformers"]\n'
                'requires = ["tokenizers<0.20,>=0.19"]\n'
            ),
        ),
        Case(
            {"train.py": "import torchvision\n"},
            target=(
                '[distributions.torch]\nversion = "2.13.0+cpu"\nmodules = ["torch"]\n'
                '[distributions.torchvision]\nversion = "0.29.2"\nmodules = ["torchvision"]\n'
                'requires = ["torch==2.13.0", "scipy<1; extra == \'scipy\'"]\n'
            ),
        ),
        Case(
            {"train.py": "import json\n"},
            target=(
                '[distributions.torch]\nversion = "2.12.0"\nmodules = ["torch"]\n'
                '[distributions.torchvision]\nversion = "0.29.2"\nmodules = ["torchvision"]\n'
                'requires = ["torch==2.13.0"]\n'
            ),
        ),
    ),
)
