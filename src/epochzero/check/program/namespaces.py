"""The names that an owner has, and names that are bound without an assignment: ``setattr``, ``globals()[name]``.

A name that is computed may be any name. From then on the data under all names of that owner is
unknown; functions, classes and modules are rarely rebound this way and stay known.
"""

from __future__ import annotations

from epochzero.check.program.heap import (
    Box,
    Class,
    HeapJournal,
    JobModule,
    LibraryResult,
    Names,
    Object,
    V,
)
from epochzero.check.program.values import Anything, Constant, Items, Text

Owner = Object | LibraryResult | Class | JobModule
"""A value whose attributes are names."""

_MAY_BE_SET = Anything("it may have been set under a computed name")
_DATA = (Constant, Text, Items, Box)


def set_name(journal: HeapJournal, owner: Owner, key: V, value: V) -> None:
    """Bind a name of an owner: the one that ``key`` holds, or any name if it is not known."""
    if isinstance(key, Constant):
        journal.set(_names(owner), str(key.value), value)
    else:
        set_any_name(journal, owner)


def set_any_name(journal: HeapJournal, owner: Owner) -> None:
    """Bind names of an owner that are not known."""
    names = _names(owner)
    inherited = [parent.names for parent in owner.cls.line()] if isinstance(owner, Object) else []
    for known in (*inherited, names):
        for name in [name for name, value in known.items() if isinstance(value, _DATA)]:
            journal.set(names, name, _MAY_BE_SET)
    match owner:
        case LibraryResult():
            owner.closed = False
        case Object(cls=cls):
            cls.opaque = True
        case Class():
            owner.opaque = True
        case JobModule():
            owner.is_closed = False


def _names(owner: Owner) -> Names:
    return owner.attributes if isinstance(owner, (Object, LibraryResult)) else owner.names


def namespace(owner: Owner, complete: bool) -> Box:
    """The dictionary of an owner's names; what is stored in it is stored in the owner."""
    known = _names(owner)
    box = Box.of("dict", known.values(), (Constant(name) for name in known), complete)
    box.mirrors = owner
    return box
