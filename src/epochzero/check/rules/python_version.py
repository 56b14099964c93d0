"""The target's Python lacks a module, a name or a syntax."""

import ast
from collections.abc import Iterator, Mapping

from epochzero.check.program.events import LibraryImport, Situation
from epochzero.check.program.values import External
from epochzero.check.rule import (
    Claim,
    Claims,
    JobView,
    Module,
    Program,
    Rule,
    SourceLocation,
    Target,
    Unknown,
    claim_at,
    claim_at_start,
    guarded,
)
from epochzero.check.rules.standard import Version, instead_of, lacks_module, lacks_name
from epochzero.check.rules.syntax_error import NEWER_PYTHON

# Modules that an installed distribution provides in place of a removed one.
_STANDS_IN = {"distutils": "setuptools"}


def _check(view: JobView) -> Claims:
    if view.target.python is None:
        return
    python = view.target.python[:2]
    for module in view.modules:
        if module.error and (needed := NEWER_PYTHON.search(module.error.msg or "")):
            yield _syntax(view.program, module, f"{needed[1]}.{needed[2]}", python)
    for event in view.imports:
        yield from _import(event, python, view.target)
    yield from _names(view.program, python)


def _syntax(program: Program, module: Module, needed: str, python: Version) -> Claim:
    error = module.error
    assert error is not None
    return claim_at_start(
        module.place(_line(module, error)),
        category="syntax_error",
        message=f"This syntax needs Python {needed}; the target has {_shown(python)}.",
        consequence=f"SyntaxError: {error.msg}",
        fix=f"Run the job with Python {needed} or newer, or rewrite it in older syntax.",
        via=next(
            (
                imported.at.via
                for imported in program.imports
                if imported.at.place.path == module.path
            ),
            (),
        ),
    )


# The parser reports the line at which one of these statements ends; users look for its start.
_STATEMENTS: Mapping[str, type[ast.stmt]] = {
    "Pattern matching": ast.Match,
    "Exception groups": ast.TryStar,
    "Parenthesized context": ast.With,
}


def _line(module: Module, error: SyntaxError) -> int:
    """The line at which syntax begins that is too new."""
    end = error.lineno or 0
    kind = next((kind for text, kind in _STATEMENTS.items() if text in (error.msg or "")), None)
    if kind is None:
        return end
    try:
        tree = ast.parse(module.text)
    except (SyntaxError, ValueError, RecursionError):
        return end
    starts = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, kind) and node.lineno <= end <= (node.end_lineno or 0)
    ]
    return max(starts, default=end)


def _import(event: LibraryImport, python: Version, target: Target) -> Iterator[Claim | Unknown]:
    if guarded(event.at, ModuleNotFoundError):
        return
    if why := lacks_module(event.module, python):
        top = event.module.partition(".")[0]
        stand_in = _STANDS_IN.get(top)
        if stand_in and (target.distributions is None or stand_in in target.distributions):
            return
        if target.distributions and any(
            top in (distribution.modules or ()) for distribution in target.distributions.values()
        ):
            return
        instead = instead_of(event.module)
        yield claim_at(
            event.at,
            message=f"{why}; the target has {_shown(python)}.",
            consequence=f"ModuleNotFoundError: No module named '{event.module}'",
            fix=f"Use {instead}." if instead else "Use another module, or another Python version.",
        )
        return
    for name in event.names:
        if why := lacks_name(f"{event.module}.{name}", python):
            yield claim_at(
                event.at,
                message=f"{why}; the target has {_shown(python)}.",
                consequence=f"ImportError: cannot import name '{name}' from '{event.module}'",
                fix=_fix(f"{event.module}.{name}"),
            )


def _names(program: Program, python: Version) -> Iterator[Claim]:
    """Names that are used without being imported: ``collections.Mapping``."""
    used: dict[tuple[str, SourceLocation], Situation] = {}
    for call in program.calls:
        used.setdefault((call.name, call.at.place), call.at)
    for look in program.lookups:
        if isinstance(look.on, External) and not look.item and not look.stored:
            used.setdefault((f"{look.on.name}.{look.name}", look.at.place), look.at)
    # An imported name was reported at its import.
    imported = {f"{event.module}.{name}" for event in program.imports for name in event.names}
    for (name, _), at in used.items():
        if name in imported or guarded(at, AttributeError):
            continue
        if why := lacks_name(name, python):
            module, _, attribute = name.rpartition(".")
            yield claim_at(
                at,
                category="attribute_not_found",
                message=f"{why}; the target has {_shown(python)}.",
                consequence=f"AttributeError: {module.removesuffix('()')} has no {attribute}",
                fix=_fix(name),
            )


def _fix(name: str) -> str:
    module, _, attribute = name.rpartition(".")
    if module == "collections":
        return f"Use collections.abc.{attribute}."
    if module == "typing":
        return f"Import {attribute} from typing_extensions."
    return "Write it for the target's Python version, or run the job with another version."


def _shown(python: Version) -> str:
    return f"Python {python[0]}.{python[1]}"


RULE = Rule(
    category="library_not_found",
    why="The target may not have the same Python version as the author's machine. A Python version "
    "can add or remove syntax and modules of the standard library.",
    fix="Use an image with the Python version that the job was written for, or write code that "
    "works in both versions.",
    source="Zhang et al., ICSE 2020, section 3.2: old Python as a cause of Syntax Error and Library "
    "Not Found; What's New in Python 3.8 to 3.14",
    check=_check,
    examples="""
        import sys
        import tomllib  # <-
        ==> target.toml <==
        python = "3.10"
        ---- ignored if
        -import tomllib
        +if sys.version_info >= (3, 11):
        +    import tomllib
        ----
        from collections import Mapping  # <-
        ==> target.toml <==
        python = "3.11"
        ---- caught if
        -from collections import Mapping  # <-
        +import time
        +t = time.clock()  # <-
        ----
        x = 1
        match x:  # <-
            case 1:
                print(x)
        ==> target.toml <==
        python = "3.9"
        ----
        import tomllib
        ----
        try:
            import tomllib
        except ImportError:
            tomllib = None
        ==> target.toml <==
        python = "3.10"
        ----
        import distutils.util
        ==> target.toml <==
        python = "3.12"
    """,
)
