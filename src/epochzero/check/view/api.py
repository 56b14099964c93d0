"""The APIs of libraries in the versions of a target: what exists, and what was removed.

`uses` finds the uses of names in `api_changes.toml`; `member` answers from the API that was captured with the target, or
from the API of the target's version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType

from epochzero.check.findings import SourceLocation
from epochzero.check.program.events import LibraryCall, LibraryImport, Lookup, Situation
from epochzero.check.program.model import Program
from epochzero.check.program.reachability import Reach
from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import External, Instance
from epochzero.check.tables import read_table
from epochzero.check.target.api import is_public
from epochzero.check.target.history import Api, api_of, history_of, libraries
from epochzero.check.target.model import CallSignature, Target

Version = tuple[int, ...]
_COLUMN = re.compile(r"^(pandas\.DataFrame|pandas\.core\.groupby\.DataFrameGroupBy)\['[^']*'\]")
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class ApiChange:
    """A name or keyword of a library that a version removed.

    Attributes:
        name: dotted name of a module, function, class or method (``pandas.DataFrame.append``).
        keyword: keyword argument of ``name`` as a function; empty if the name itself is removed.
        instead: the replacement.
        distribution: normalized name of the distribution.
        removed: first version without it.
        source: documentation of the change.
        back: version that reintroduced the name with another meaning; empty if none did.
    """

    name: str
    keyword: str
    instead: str
    distribution: str
    removed: str
    source: str
    back: str = ""


@dataclass(frozen=True, slots=True)
class ApiUse:
    """A use of a changed name or keyword.

    Attributes:
        change: the change.
        at: circumstances.
        kind: ``import``, ``attribute``, ``keyword``, or ``override`` for a method of the job's class that a library calls.
    """

    change: ApiChange
    at: Situation
    kind: str


def version(text: str) -> Version:
    """The release numbers of a version: ``2.1.0+cu121`` is ``(2, 1, 0)``; empty if it has none."""
    found = _NUMBERS.match(text.strip().removeprefix("v"))
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def reached(text: str, needed: str) -> bool:
    """Whether a version is at least another; a pre-release counts as its release."""
    have, want = version(text), version(needed)
    width = max(len(have), len(want))
    return have + (0,) * (width - len(have)) >= want + (0,) * (width - len(want))


def installed(target: Target, distribution: str) -> str:
    """The version of a distribution on the target; empty if unknown."""
    found = (target.distributions or {}).get(distribution)
    return found.version if found is not None and version(found.version) else ""


def is_gone(change: ApiChange, target: Target) -> bool:
    """Whether the target's version certainly lacks the name or keyword."""
    have = installed(target, change.distribution)
    if not have or not reached(have, change.removed):
        return False
    return not change.back or not reached(have, change.back)


@cache
def changes() -> Mapping[str, tuple[ApiChange, ...]]:
    """The known changes, by name."""
    found: dict[str, list[ApiChange]] = {}
    for group in read_table(__package__, "api_changes.toml")["group"]:
        for written, instead in group.pop("names").items():
            name, _, keyword = written.partition("(")
            change = ApiChange(name, keyword.rstrip("=)"), instead, **group)
            found.setdefault(name, []).append(change)
    return MappingProxyType({name: tuple(all_of) for name, all_of in found.items()})


@cache
def _results() -> Mapping[str, str]:
    """The class of the result of a library's function, by its dotted name."""
    table = read_table(__package__, "api_results.toml")
    found: dict[str, str] = {}
    for cls, entries in table.items():
        for entry in entries:
            owner, _, methods = entry.partition(": ")
            found |= {f"{owner}.{name}": cls for name in methods.split()} or {owner: cls}
    return found


_ALIASES = {
    "lightning.pytorch": "pytorch_lightning",
    "tensorflow.keras": "keras",
    "torch.optim.lr_scheduler.lr_scheduler": "torch.optim.lr_scheduler",
}
"""Other names of the same library, by module."""


def _column_of(found: re.Match[str]) -> str:
    """Matches a column of a table or of its groups."""
    return (
        "pandas.Series" if found[1] == "pandas.DataFrame" else "pandas.core.groupby.SeriesGroupBy"
    )


@lru_cache(maxsize=4096)
def class_of(name: str) -> str:
    """Replace calls in a dotted name by the classes of their results.

    ``pandas.read_csv().append`` is ``pandas.DataFrame.append``; empty if a result is unknown.
    """
    parts = name.split("()")
    resolved = parts[0]
    for rest in parts[1:]:
        last = resolved.rpartition(".")[2]
        made = _results().get(resolved, resolved if last[:1].isupper() else "")
        if not made:
            return ""
        resolved = _COLUMN.sub(_column_of, made + rest)
    for old, new in _ALIASES.items():
        if resolved.startswith(old + "."):
            resolved = new + resolved[len(old) :]
    return resolved


@lru_cache(maxsize=1)  # Two rules query the same program in succession.
def uses(program: Program) -> tuple[ApiUse, ...]:
    """The uses of changed names and keywords in a program."""
    found: dict[tuple[SourceLocation, ApiChange], ApiUse] = {}
    for use in (*_in_events(program), *_overrides(program)):
        line = SourceLocation(use.at.place.path, use.at.place.line)
        found.setdefault((line, use.change), use)
    return tuple(found.values())


def _in_events(program: Program) -> Iterator[ApiUse]:
    for event in program.events:
        if isinstance(event, LibraryImport):
            for name in _imported(event):
                yield from (ApiUse(change, event.at, "import") for change in _named(name))
        elif isinstance(event, Lookup):
            if not event.item and not event.stored and (name := _looked(event)):
                yield from (ApiUse(change, event.at, "attribute") for change in _named(name))
        elif isinstance(event, LibraryCall):
            yield from _in_call(event)


def _in_call(event: LibraryCall) -> Iterator[ApiUse]:
    name = class_of(event.name)
    for change in changes().get(name, ()):
        if not change.keyword:
            yield ApiUse(change, event.at, "attribute")
        elif change.keyword in event.keywords:
            yield ApiUse(change, event.at, "keyword")
    if not name.endswith("."):
        yield from (ApiUse(c, event.at, "attribute") for c in _named(name, above=True))


def _named(name: str, above: bool = False) -> Iterator[ApiChange]:
    """The changes of a name, or with ``above`` those of the names that contain it."""
    if not above:
        yield from (change for change in changes().get(name, ()) if not change.keyword)
    while "." in name:
        name = name.rpartition(".")[0]
        yield from (change for change in changes().get(name, ()) if not change.keyword)


def _imported(event: LibraryImport) -> Iterator[str]:
    if not event.names:
        yield event.module
    for name in event.names:
        yield event.module if name == "*" else f"{event.module}.{name}"


def _looked(event: Lookup) -> str:
    if isinstance(event.on, External):
        return class_of(f"{event.on.name}.{event.name}")
    if isinstance(event.on, Instance) and not event.on.own:
        return class_of(f"{event.on.made_by}().{event.name}")
    return ""


def _overrides(program: Program) -> Iterator[ApiUse]:
    """Methods that a class of the job defines for a library that no longer calls them."""
    reach = Reach.of(program)
    for module in program.modules.values():
        code = code_of(module)
        for cls in code.classes.values():
            for base in code.library_bases(cls):
                for method in code.methods(cls):
                    for change in changes().get(f"{class_of(base)}.{method.name}", ()):
                        if not change.keyword and (at := reach.at(module, cls)) is not None:
                            place = module.place(method)
                            yield ApiUse(change, Situation(place, at.via, at.phase), "override")


def member(target: Target, name: str) -> tuple[bool | None, CallSignature | None, tuple[str, ...]]:
    """Look up a dotted name of a library: in the API captured with the target, else in that of its version.

    Returns:
        whether it exists (None if unknown), its signature if known, and the names next to it.
    """
    return _member(_api(target, name.partition(".")[0]), name)


def elsewhere(
    target: Target, name: str, fits: Callable[[CallSignature], bool] | None = None
) -> str:
    """Name the other versions of a library that have a name, and what to do; empty if none is known.

    Args:
        target: has the library in some version.
        name: dotted name.
        fits: tests its signature; without it, the name is sufficient.
    """
    history = history_of(libraries().get(name.partition(".")[0], ""))
    if history is None:
        return ""
    have = installed(target, history.distribution)
    found: list[str] = []
    for version in history.versions:
        there, signature, _ = _member(api_of(history.distribution, version) or {}, name)
        if there and (fits is None or (signature is not None and fits(signature))):
            found.append(_minor(version))
    if not found or not have:
        return ""
    later = [text for text in found if not reached(have, text)]
    if later:
        return f"Install {history.distribution}>={later[0]} there, or avoid it."
    return f"Write it for {history.distribution} {_minor(have)}, or pin {history.distribution}=={found[-1]}.*."


def _minor(text: str) -> str:
    return ".".join(map(str, version(text)[:2]))


def _api(target: Target, library: str) -> Api:
    """The modules of a library on the target with their names; empty if unknown."""
    if library in target.api:
        return target.api
    distribution = libraries().get(library, "")
    have = installed(target, distribution)
    return (api_of(distribution, have) if have else None) or target.api


def _member(api: Api, name: str) -> tuple[bool | None, CallSignature | None, tuple[str, ...]]:
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        names = api.get(".".join(parts[:length]))
        if names is not None:
            return _among(api, ".".join(parts[:length]), names, parts[length:])
    return None, None, ()


def _among(
    api: Api, module: str, names: Mapping[str, CallSignature | None], rest: list[str]
) -> tuple[bool | None, CallSignature | None, tuple[str, ...]]:
    written = ".".join(rest)
    if written in names:
        return True, names[written], ()
    prefix = ".".join([*rest[:-1], ""]) if len(rest) > 1 else ""
    beside = tuple(
        name[len(prefix) :]
        for name in names
        if name.startswith(prefix) and "." not in name[len(prefix) :]
    )
    is_open = f"{prefix}*" in names or "__getattr__" in names or not is_public(rest[-1])
    # A class without members is unknown, and attributes of constants are not captured.
    if is_open or not beside or len(rest) > 2:
        return None, None, beside
    inner = f"{module}.{written}"
    if any(text == inner or text.startswith(inner + ".") for text in api):
        return True, None, beside
    return False, None, beside
