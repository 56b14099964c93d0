"""The rules, one file each, and the catalogue that loads them.

A module of this package that has ``RULE`` is a rule; its id is the name of the file with ``-`` for
``_``, its title the first line of the docstring. Other modules are helpers. Adding a rule needs no
other change.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from types import ModuleType

from epochzero import taxonomy
from epochzero.check.rule import Case, Rule
from epochzero.check.rules.unread import Unread, others
from epochzero.errors import CatalogError, InputError, suggestion

DRY_RUN = tuple(name for name in others() if name.startswith("dry-run-"))
"""Ids of dry-run findings, which no rule reads from the source."""

UNREAD = tuple(others())
"""Ids of all findings that no rule reads from the source: those of dry runs, of data and their
profiles, and of suppressions.
"""

_TEXTS = ("title", "why", "fix", "source")


@cache
def builtin() -> tuple[Rule, ...]:
    """The rules of this package, by id.

    Raises:
        CatalogError: one of them is invalid.
    """
    return load(sys.modules[__name__])


def load(folder: ModuleType) -> tuple[Rule, ...]:
    """The rules among the modules of a package, by id.

    Raises:
        CatalogError: a module cannot be imported, or its rule is invalid.
    """
    rules = []
    for found in pkgutil.iter_modules(folder.__path__):
        name = f"{folder.__name__}.{found.name}"
        try:
            module = importlib.import_module(name)
        except Exception as error:
            raise CatalogError(f"{name} cannot be imported: {error}") from error
        if hasattr(module, "RULE"):
            rules.append(_checked(module, found.name.replace("_", "-")))
    return tuple(sorted(rules, key=lambda rule: rule.id))


def _checked(module: ModuleType, identity: str) -> Rule:
    """The rule of a module, if it is one and complete."""
    if not isinstance(module.RULE, Rule):
        raise CatalogError(f"{module.__name__}: RULE is a {type(module.RULE).__name__}, not a Rule")
    title = (module.__doc__ or "").partition("\n")[0].removesuffix(".")
    if sys.flags.optimize > 1:  # Python has no docstrings then.
        title = identity
    rule = replace(module.RULE, id=identity, title=title)
    for problem in _problems(rule):
        raise CatalogError(f"{module.__name__}: {problem}")
    return rule


def _problems(rule: Rule) -> Iterable[str]:
    """The faults of a rule."""
    if rule.category not in taxonomy.categories():
        yield f"category: {rule.category!r} is not in the taxonomy"
    for name in _TEXTS:
        if not getattr(rule, name).strip():
            yield f"{name} is empty"


def find(name: str) -> Rule:
    """The rule with this id.

    Raises:
        InputError: no rule has it; the message suggests a similar one.
    """
    rules = {rule.id: rule for rule in builtin()}
    if name not in rules:
        hint = suggestion(name, rules, "`epochzero check --rules` lists them")
        raise InputError(f"no rule has the id {name!r}; {hint}")
    return rules[name]


def choose(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule, ...]:
    """The selected rules: those of ``select``, or all if it is empty, without ``ignore``.

    Raises:
        InputError: a name is neither a rule nor one of `UNREAD`.
    """
    wanted = {name if name in UNREAD else find(name).id for name in select}
    unwanted = {name if name in UNREAD else find(name).id for name in ignore}
    return tuple(
        rule for rule in builtin() if (rule.id in wanted or not wanted) and rule.id not in unwanted
    )
