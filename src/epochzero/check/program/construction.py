"""Construction of objects: the parameters of data classes, and classes that cannot be instantiated."""

from __future__ import annotations

import ast

from epochzero.check.program.heap import Class, Function, LibraryResult, V
from epochzero.check.program.values import External
from epochzero.check.target.model import CallSignature
from epochzero.check.target.signature import misfit


def is_made_otherwise(cls: Class) -> bool:
    """Whether ``__new__``, a metaclass or a decorator may also control how an object is created."""
    return any(parent.opaque or "__new__" in parent.names for parent in cls.line())


def refusal(cls: Class, count: int, names: tuple[str, ...], complete: bool) -> str:
    """Why a class cannot be instantiated with these arguments; empty if it can or if that is unknown."""
    if is_made_otherwise(cls):
        return ""
    if abstract := _abstract_method(cls):
        return f"without an implementation for abstract method '{abstract}'"
    line = cls.line()
    if any("__init__" in parent.names for parent in line):
        return ""
    if not any(parent.bases for parent in line) and not cls.is_data and (count or names):
        return "takes no arguments"
    message = _constructor_of_data(cls)
    return "" if message is None else misfit(message, count, names, complete)


def _abstract_method(cls: Class) -> str:
    """An abstract method that a class does not implement; empty if there is none."""
    line = cls.line()
    is_checked = any(
        External("abc.ABC") in parent.bases
        or any(key.arg == "metaclass" for key in parent.node.keywords)
        for parent in line
    )
    if not is_checked or cls.externals():
        return ""
    names = dict.fromkeys(name for parent in line for name in parent.names)
    found = {
        name: next(parent.names[name] for parent in line if name in parent.names) for name in names
    }
    for name, value in found.items():
        decorators = value.decorators if isinstance(value, Function) else []
        if External("abc.abstractmethod") in decorators:
            return name
    return ""


def _constructor_of_data(cls: Class) -> CallSignature | None:
    """The parameters of a data class or named tuple; None if unknown."""
    line = cls.line()
    is_tuple = cls.externals() == ("typing.NamedTuple",) and len(line) == 1
    plain = all(
        [ast.unparse(decorator) for decorator in each.node.decorator_list] in (["dataclass"], ["dataclasses.dataclass"])
        for each in line
    )  # fmt: skip
    fields = fields_of(cls)
    if not cls.is_data or not (is_tuple or (plain and not cls.externals())):
        return None
    written = [n.annotation for each in line for n in each.node.body if isinstance(n, ast.AnnAssign)]  # fmt: skip
    if any("KW_ONLY" in ast.dump(node) for node in written):
        return None
    if any(isinstance(field, LibraryResult) for field in fields.values()):
        return None  # field(...) may exclude it from the constructor
    names = tuple(fields)
    required = sum(default is None for default in fields.values())
    return CallSignature(positional=names, required=required, keywords=names)


def fields_of(cls: Class) -> dict[str, V | None]:
    """The fields of a data class with their defaults, those of its bases first."""
    found: dict[str, V | None] = {}
    for parent in reversed(cls.line()):
        for statement in parent.node.body:
            if not isinstance(statement, ast.AnnAssign):
                continue
            name = getattr(statement.target, "id", "")
            if name and "ClassVar" not in ast.dump(statement.annotation):
                found[name] = parent.names.get(name)
    return found


def misplaced_field(cls: Class) -> str:
    """A field without a default that follows one with a default; empty if there is none."""
    message = _constructor_of_data(cls)
    if message is None:
        return ""
    defaults = list(fields_of(cls).values())
    first = next((at for at, default in enumerate(defaults) if default is not None), len(defaults))
    late = [at for at, default in enumerate(defaults) if default is None and at > first]
    return message.positional[late[0]] if late else ""
