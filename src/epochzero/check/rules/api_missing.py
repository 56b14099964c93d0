"""The job uses a name that the target's version of a library does not have."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import accumulate, islice

from epochzero.check.program.events import (
    CertainError,
    LibraryCall,
    LibraryImport,
    Lookup,
    Situation,
)
from epochzero.check.program.values import External
from epochzero.check.rule import (
    Claims,
    JobView,
    Program,
    Rule,
    SourceLocation,
    Target,
    claim_at,
    guarded,
)
from epochzero.check.view.api import class_of, elsewhere, is_gone, member, uses


def _check(view: JobView) -> Claims:
    reach = view.reach
    gone = [use.at.place for use in uses(view.program) if is_gone(use.change, view.target)]
    reported = {(place.path, place.line) for place in gone}
    for name, at, error in _names(view.program):
        line = (at.place.path, at.place.line)
        is_import = error is not AttributeError
        handled = guarded(at, error)
        if line in reported or handled:
            continue
        there, _, siblings = member(view.target, name)
        if there is not False or reach.is_versioned(at):
            continue
        reported.add(line)
        yield claim_at(
            at,
            category="library_not_found" if is_import else RULE.category,
            severity=reach.severity(at),
            message=f"The target's {name.partition('.')[0]}{_version(view.target, name)} has no {name}.",
            consequence=_consequence(name, error),
            fix=_fix(view.target, name, siblings),
        )


def _consequence(name: str, error: type[Exception]) -> str:
    within, _, last = name.rpartition(".")
    if error is ModuleNotFoundError:
        return f"ModuleNotFoundError: No module named '{name}'"
    if error is ImportError:
        return f"ImportError: cannot import name '{last}' from '{within}'"
    return f"AttributeError: {within} has no attribute '{last}'"


def _fix(target: Target, name: str, siblings: Sequence[str]) -> str:
    if other := elsewhere(target, name):
        return other
    near = get_close_matches(name.rpartition(".")[2], siblings, n=3)
    return (
        f"Similar names there: {', '.join(near)}." if near else "See the library's release notes."
    )


def _names(program: Program) -> Iterator[tuple[str, Situation, type[Exception]]]:
    """The dotted names of libraries that the job uses, and the error if one is missing."""
    seen: set[tuple[str, SourceLocation]] = set()
    for event in program.events:
        for name, error in () if isinstance(event, CertainError) else _of(event):
            if (name, event.at.place) not in seen:
                seen.add((name, event.at.place))
                yield name, event.at, error


def _of(event: LibraryImport | LibraryCall | Lookup) -> Iterator[tuple[str, type[Exception]]]:
    if isinstance(event, LibraryImport):
        within = accumulate(event.module.split("."), "{}.{}".format)
        yield from ((module, ModuleNotFoundError) for module in islice(within, 1, None))
        for imported in event.names:
            if imported != "*":
                yield f"{event.module}.{imported}", ImportError
    elif isinstance(event, Lookup):
        if isinstance(event.on, External) and not event.item and not event.stored:
            yield f"{event.on.name}.{event.name}", AttributeError
    elif "()" not in event.name:
        yield event.name, AttributeError
    elif event.name.count("()") == 1 and not event.name.endswith("()"):
        # A method of an instance: `torch.nn.Linear().froward`.
        name = class_of(event.name)
        if name and name.count(".") > 1 and not name.endswith("__call__"):
            yield name, AttributeError


def _version(target: Target, name: str) -> str:
    found = (target.distributions or {}).get(name.partition(".")[0].replace("_", "-"))
    return f" {found.version}" if found is not None else ""


RULE = Rule(
    category="attribute_not_found",
    why="The name often belongs to another version of the library or is misspelt. The job fails "
    "when this line runs.",
    fix="Use a name that exists in the target's version of the library.",
    source="Zhang et al., ICSE 2020, section 5.3, finding 7: frameworks evolve rapidly",
    check=_check,
    examples="""
        import mylib

        mylib.laod('a')  # <-
        ==> target.toml <==
        [api.mylib]
        load = "(path)"
        Trainer = "(model)"
        "Trainer.fit" = "(data)"
        "Trainer.save" = "(path)"
        VERSION = false
        [api."mylib.nn"]
        Linear = "(a, b)"
        ---- caught if
        -import mylib
        +from mylib import save  # <-
        @@
        -mylib.laod('a')  # <-
        +save('a')
        ---- caught if
        -mylib.laod('a')  # <-
        +mylib.Trainer('m').fti([1])  # <-
        ---- caught if
        -mylib.laod('a')  # <-
        +print(mylib.float16)  # <-
        ---- ignored if
        -import mylib
        -
        -mylib.laod('a')
        +try:
        +    from mylib import save
        +except ImportError:
        +    save = None
        ---- ignored if
        +from mylib import nn
         import mylib
        @@
        -mylib.laod('a')
        +print(nn.Linear(1, 2), mylib.nn)
        ----
        from torch import nn

        norm = nn.RMSNorm(8)  # <-
        ==> target.toml <==
        [distributions]
        torch = "2.1.2"
        ---- ignored if
        -torch = "2.1.2"
        +torch = "9.9"
        ----
        import torch.nn.attention.flex_attention  # <-
        ==> target.toml <==
        [distributions]
        torch = "2.1.2"
        ---- ignored if
        -import torch.nn.attention.flex_attention
        +import torch
        +
        +if hasattr(torch.nn, 'RMSNorm'):
        +    torch.nn.RMSNorm(8)
        ----
        import mylib

        mylib.anything('a')
        ==> target.toml <==
        [api.mylib]
        load = "(path)"
        "*" = false
    """,
)
