"""The public API of installed libraries, read statically: names and signatures.

No library is imported: that takes seconds and may use a GPU. Modules are found like Python's own path finder does;
imports, ``__all__``, ``import *`` and base classes are followed through them.
"""

from __future__ import annotations

import heapq
import importlib.machinery
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from epochzero.check.target.definitions import (
    THING,
    Alias,
    Bound,
    ClassStatement,
    FunctionDefinition,
)
from epochzero.check.target.model import CallSignature
from epochzero.check.target.source import ModuleSource, parse, quick

LIBRARIES = (
    "torch", "torchvision", "torchaudio", "transformers", "accelerate", "datasets", "lightning",
    "pytorch_lightning", "numpy", "pandas", "sklearn", "deepspeed", "tokenizers", "huggingface_hub",
    "peft", "timm", "torchmetrics", "safetensors", "evaluate", "diffusers", "trl", "einops",
)  # fmt: skip

_LARGE = frozenset({"transformers"})
"""Libraries with more names than all others together."""

ANY = "*"
_MOST_STEPS = 40
_EXTENSIONS = tuple(importlib.machinery.EXTENSION_SUFFIXES)
# Bases without members that a job would call.
_EMPTY_BASES = frozenset({"object", "ABC", "Generic", "Protocol", "abc.ABC", "typing.Generic"})
_TESTS = frozenset({"tests", "test"})

Members = dict[str, CallSignature | None]


def read_api(
    libraries: Iterable[str], path: Sequence[str], *, most_names: int | None = None
) -> tuple[dict[str, Members], str]:
    """Return the public names of libraries with their signatures, by module.

    Args:
        libraries: importable top-level modules; missing ones are skipped.
        path: directories in which modules are searched, like ``sys.path``.
        most_names: number of names after which no further module is read; None for no limit. A count, not a time, so
            that a busy machine reads as much as an idle one. Outer modules of all libraries come first, since jobs use
            these most; large libraries come last.

    Returns:
        the API as in `Target.api`, and the module before which reading stopped; empty if all were read.
    """
    reader = _Library(path)
    api: dict[str, Members] = {}
    names = 0
    with quick():
        modules = [reader.public_modules(library) for library in libraries]
        for module in heapq.merge(*modules, key=_turn):
            if most_names is not None and names >= most_names:
                return api, module
            api[module] = reader.describe(module)
            names += len(api[module])
    return api, ""


def _turn(module: str) -> tuple[bool, int]:
    """The state of a module that is being read."""
    return module.partition(".")[0] in _LARGE, module.count(".")


def is_public(name: str) -> bool:
    """Whether a name of a module is public; only public names are read."""
    return not name.startswith("_") and name not in _TESTS


@cache
def _compiled() -> Mapping[str, Sequence[str]]:
    """Names that compiled code binds, by module, for the libraries whose names are completely known."""
    text = files(__package__).joinpath("compiled.toml").read_text(encoding="utf-8")
    return MappingProxyType(tomllib.loads(text))


class _Library:
    """Modules found on a path, each read once."""

    def __init__(self, path: Sequence[str]) -> None:
        self.path = [Path(folder) for folder in path]
        self._sources: dict[str, ModuleSource | None] = {}
        self._folders: dict[str, Path] = {}
        self._members: dict[ClassStatement, tuple[Members, bool]] = {}
        self._exports: dict[tuple[str, bool], tuple[dict[str, Bound], bool]] = {}

    # -- Modules -------------------------------------------------------------------------------

    def public_modules(self, library: str) -> Iterator[str]:
        """Yield the library and its public modules, the outer ones first."""
        waiting = [library]
        for module in waiting:
            found = self.source(module)
            if found is None:
                continue
            yield module
            waiting += [f"{module}.{name}" for name in sorted(found.submodules) if is_public(name)]

    def source(self, name: str) -> ModuleSource | None:
        """The module of this name; None if it does not exist."""
        if name not in self._sources:
            self._sources[name] = None  # a module that imports itself
            self._sources[name] = self._find(name)
        return self._sources[name]

    def _find(self, name: str) -> ModuleSource | None:
        outer, _, last = name.rpartition(".")
        if outer:
            parent = self.source(outer)
            if parent is None or last not in parent.submodules:
                return None
        for folder in [self._folders[outer]] if outer else self.path:
            place = folder / last
            if _is_package(place):
                self._folders[name] = place
                inits = (place / "__init__.py", place / "__init__.pyi")
                sources = [file for file in inits if file.is_file()]
                found = parse(name, sources, package=True)
                found.submodules = frozenset(_modules_in(place))
                if not sources:
                    found.complete = not any(place.glob("__init__.*"))
                return self._with_compiled_names(found, sources)
            stems = [place.with_name(place.name + end) for end in (".py", ".pyi")]
            sources = [file for file in stems if file.is_file()]
            if sources or any(place.with_name(place.name + e).is_file() for e in _EXTENSIONS):
                return self._with_compiled_names(parse(name, sources, package=False), sources)
        return None

    def _with_compiled_names(self, found: ModuleSource, sources: Sequence[Path]) -> ModuleSource:
        """A module with the known names of its compiled part: its stub may omit some."""
        known = _compiled()
        if sources and sources[0].suffix == ".pyi" and found.name.split(".")[0] not in known:
            found.complete = False
        for name in known.get(found.name, ()):
            found.names.setdefault(name, THING)
        return found

    # -- Names ---------------------------------------------------------------------------------

    def exports(self, module: str, *, every: bool) -> tuple[dict[str, Bound], bool]:
        """The names that ``import *`` takes from a module (``every``: all names), and whether they are complete."""
        key = (module, every)
        if key in self._exports:
            return self._exports[key]
        self._exports[key] = ({}, True)  # modules that import * from each other
        found = self.source(module)
        if found is None:
            return {}, False
        complete = found.complete
        bound: dict[str, Bound] = {}
        for star in found.stars:
            name, whole = self._star(found, star)
            taken, sure = self.exports(name, every=whole)
            behind = self.source(name)
            hidden = behind.hidden if behind else ()
            bound |= {each: Alias(name, each) for each in taken if each not in hidden}
            complete = complete and sure
        bound |= found.names
        if not every:
            chosen = found.exports
            bound = {
                name: definition
                for name, definition in bound.items()
                if (name in chosen if chosen is not None else not name.startswith("_"))
            }
        self._exports[key] = (bound, complete)
        return self._exports[key]

    def _star(self, source: ModuleSource, star: str) -> tuple[str, bool]:
        """The module of an ``import *``, or of a loop over ``dir(module)``."""
        if not star.startswith("*"):
            return star, False
        first, _, rest = star[1:].partition(".")
        bound = source.names.get(first)
        if isinstance(bound, Alias) and bound.module:
            first = f"{bound.module}.{bound.name}" if bound.name else bound.module
        elif first != source.name:
            first = f"{source.name}.{first}"
        return (f"{first}.{rest}" if rest else first), True

    def resolve(self, module: str, name: str, steps: int = 0) -> Bound | ModuleSource | None:
        """What a dotted name of a module finally refers to; None if unknown."""
        if steps > _MOST_STEPS:
            return None
        first, _, rest = name.partition(".")
        found = self._first(module, first, steps)
        if not rest or found is None:
            return found
        if isinstance(found, ModuleSource):
            return self.resolve(found.name, rest, steps + 1)
        if isinstance(found, ClassStatement) and "." not in rest:
            return found.members.get(rest)
        return None

    def _first(self, module: str, name: str, steps: int) -> Bound | ModuleSource | None:
        bound = self.exports(module, every=True)[0].get(name)
        if bound is None:
            return self.source(f"{module}.{name}") if module else None
        if not isinstance(bound, Alias):
            return bound
        if bound.module and not bound.name:
            return self.source(bound.module)
        if bound.module == module and bound.name == name:
            return self.source(f"{module}.{name}")
        return self.resolve(bound.module or module, bound.name, steps + 1)

    # -- What a job sees -----------------------------------------------------------------------

    def describe(self, module: str) -> Members:
        """The public names of a module, with the members of the classes that it defines."""
        found = self.source(module)
        if found is None:
            return {ANY: None}
        bound, complete = self.exports(module, every=True)
        names: Members = dict.fromkeys(n for n in found.submodules if not n.startswith("_"))
        for name in bound:
            if name.startswith("_") and name != "__version__":
                continue
            known = self.resolve(module, name)
            names[name] = None
            if isinstance(known, FunctionDefinition):
                names[name] = known.signature
            elif isinstance(known, ClassStatement):
                names[name] = self.constructor(known)
                if _at_home(known, name, found):
                    members, sure = self.members(known)
                    names |= {
                        f"{name}.{member}": definition for member, definition in members.items()
                    }
                    if not sure:
                        names[f"{name}.{ANY}"] = None
        if not complete:
            names[ANY] = None
        return names

    def members(self, known: ClassStatement) -> tuple[Members, bool]:
        """The public members of a class and its bases, and whether they are complete."""
        if known not in self._members:
            self._members[known] = ({}, False)  # a class that is its own base
            found: Members = {}
            complete = not known.open
            for base in reversed(known.bases):
                inherited, sure = self._of_base(known, base)
                found |= inherited
                complete = complete and sure
            for name, bound in known.members.items():
                if not name.startswith("_") or name == "__call__":
                    is_function = isinstance(bound, FunctionDefinition)
                    known_before = found.get(name)
                    # `self.name` refers to what a base defines.
                    if is_function or known_before is None:
                        found[name] = (
                            bound.signature if isinstance(bound, FunctionDefinition) else None
                        )
            self._members[known] = (found, complete)
        return self._members[known]

    def _of_base(self, known: ClassStatement, base: str | None) -> tuple[Members, bool]:
        if base in _EMPTY_BASES:
            return {}, True
        parent = self.resolve(known.module, base) if base else None
        if isinstance(parent, ClassStatement) and parent is not known:
            return self.members(parent)
        return {}, _ends(base) in _EMPTY_BASES

    def constructor(self, known: ClassStatement, depth: int = 0) -> CallSignature | None:
        """The parameters of ``Class(...)``; None if unknown."""
        if depth > _MOST_STEPS or known.opaque or "Protocol" in known.bases:
            return None
        if known.fields is not None and "__init__" not in known.members:
            return self._dataclass(known, depth)
        made = [known.members[m] for m in ("__init__", "__new__") if m in known.members]
        if made:
            signatures = [m.signature for m in made if isinstance(m, FunctionDefinition)]
            known_signatures = [s for s in signatures if s is not None]
            return known_signatures[0] if len(known_signatures) == 1 == len(made) else None
        for base in known.bases:
            if base in _EMPTY_BASES or _ends(base) in _EMPTY_BASES:
                continue
            parent = self.resolve(known.module, base) if base else None
            if not isinstance(parent, ClassStatement) or parent is known:
                return None
            if self._makes(parent, depth) is None:
                return None
            if self._makes(parent, depth):
                return self.constructor(parent, depth + 1)
        return CallSignature()

    def _makes(self, known: ClassStatement, depth: int) -> bool | None:
        """Whether a class or a base of it has a constructor; None if unknown."""
        if depth > _MOST_STEPS:
            return None
        if known.fields is not None or {"__init__", "__new__"} & known.members.keys():
            return True
        for base in known.bases:
            if base in _EMPTY_BASES or _ends(base) in _EMPTY_BASES:
                continue
            parent = self.resolve(known.module, base) if base else None
            makes = self._makes(parent, depth + 1) if isinstance(parent, ClassStatement) else None
            if makes is not False:
                return makes
        return False

    def _dataclass(self, known: ClassStatement, depth: int) -> CallSignature | None:
        """The constructor of a dataclass: the fields of its bases first."""
        fields: dict[str, tuple[bool, bool]] = {}
        for each in reversed(self._line(known, depth) or []):
            for name, default, only_keyword in each.fields or ():
                fields[name] = (default, only_keyword)
        if self._line(known, depth) is None:
            return None
        by_place = [name for name, (_, only) in fields.items() if not only]
        by_name = [name for name, (_, only) in fields.items() if only]
        return CallSignature(
            positional=tuple(by_place),
            required=next((n for n, name in enumerate(by_place) if fields[name][0]), len(by_place)),
            keywords=(*by_place, *by_name),
            required_keywords=tuple(name for name in by_name if not fields[name][0]),
        )

    def _line(self, known: ClassStatement, depth: int) -> list[ClassStatement] | None:
        """A class and its bases; None if one cannot be read."""
        if depth > _MOST_STEPS:
            return None
        line = [known]
        for base in known.bases:
            if base in _EMPTY_BASES or _ends(base) in _EMPTY_BASES:
                continue
            parent = self.resolve(known.module, base) if base else None
            above = self._line(parent, depth + 1) if isinstance(parent, ClassStatement) else None
            if above is None:
                return None
            line += above
        return line


def _at_home(known: ClassStatement, name: str, module: ModuleSource) -> bool:
    """Whether a module is a public location of a class, not only a user of it."""
    return (
        known.module == module.name
        or (module.package and known.module.startswith(f"{module.name}."))
        or name in (module.exports or ())
    )


def _ends(base: str | None) -> str:
    return (base or "").rpartition(".")[2]


def _is_package(place: Path) -> bool:
    """Whether a directory is a package, or a namespace package with modules."""
    return place.is_dir() and (
        any(place.glob("__init__.*")) or any(place.glob("*.py")) or any(place.glob("*/__init__.py"))
    )


def _modules_in(folder: Path) -> Iterator[str]:
    """The names of the modules in a package's directory."""
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        name = entry.name.split(".")[0]
        if not name.isidentifier() or name == "__init__":
            continue
        if entry.is_symlink() and folder.resolve().is_relative_to(entry.resolve()):
            continue  # a link to a parent directory
        if entry.name.endswith((".py", ".pyi", *_EXTENSIONS)) or (
            entry.is_dir() and "." not in entry.name and _is_package(entry)
        ):
            yield name
