"""Signatures and members of a library's functions and classes, read from their definitions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from epochzero.check.target.model import CallSignature
from epochzero.check.target.signature import merged, of_definition

# Decorators that do not change the parameters of a function.
_KEEPING = frozenset(
    [
        "abstractmethod",
        "abstractproperty",
        "auto_docstring",
        "beta",
        "cache",
        "can_return_tuple",
        "classmethod",
        "compile",
        "contextmanager",
        "asynccontextmanager",
        "copy_func_docstring_to",
        "deprecated",
        "doc",
        "disable",
        "disallow",
        "enable_grad",
        "export",
        "final",
        "finalize_array_function_like",
        "forbid_in_graph",
        "functional_datapipe",
        "ignore",
        "inference_mode",
        "is_documented_by",
        "jit",
        "lru_cache",
        "no_grad",
        "no_type_check",
        "onlyif",
        "override",
        "overload",
        "overrides",
        "_overload_method",
        "_exception_logger",
        "_time_logger",
        "rank_zero_only",
        "register_pytree_node",
        "replace_return_docstrings",
        "runtime_checkable",
        "rethrow_oom",
        "script",
        "script_method",
        "set_module",
        "set_default_if_none_to",
        "staticmethod",
        "unused",
        "validate_params",
        "wraps",
        "add_end_docstrings",
        "add_start_docstrings",
        "add_start_docstrings_to_model_forward",
        "add_code_sample_docstrings",
        "array_function_dispatch",
        "array_function_from_dispatcher",
        "Appender",
        "Substitution",
        "compatibility",
        "experimental",
        "experimental_feature",
        "public_api",
        "PublicAPI",
        "DeveloperAPI",
        "substitute_in_graph",
        "_exposed_in",
        "allow_in_graph",
        "_disable_dynamo",
        "_copy_to_script_wrapper",
        "skip_init_arg",
        "requires_backends",
        "available_if",
        "typechecked",
    ]
)
_DESCRIPTORS = frozenset({"property", "cached_property", "classproperty", "abstractproperty"})
_KEEPING_CLASSES = frozenset(
    [
        "dataclass",
        "final",
        "total_ordering",
        "runtime_checkable",
        "set_module",
        "compatibility",
        "deprecated",
        "add_start_docstrings",
        "add_end_docstrings",
        "auto_docstring",
        "no_type_check",
        "export",
        "PublicAPI",
        "DeveloperAPI",
        "functional_datapipe",
    ]
)
_PLAIN_METACLASSES = frozenset({"ABCMeta", "type"})
_SETTING = ("setattr(self", "setattr(cls", "self.__dict__", "cls.__dict__", "vars(self", "locals()")
# Two patterns: each begins with a plain text, which makes the search fast.
_MEMBERS = (re.compile(r"self\.([A-Za-z]\w*)"), re.compile(r"cls\.([A-Za-z]\w*)"))


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """A function, with its signature if it is known."""

    signature: CallSignature | None


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name for an object: of a module (``module`` and ``name``), or of the same module."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Thing:
    """A constant, an object, or something unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassStatement:
    """A class statement.

    Attributes:
        name: name of the class.
        module: its module.
        bases: dotted names in that module; None for a base that is not a name (``Base[T]()``).
        members: by name; functions without ``self`` or ``cls``.
        fields: parameters of a dataclass's constructor, with whether each has a default and whether it is keyword-only;
            None for other classes.
        opaque: whether a decorator or metaclass may change how it is instantiated.
        open: whether it may have members that cannot be read here.
    """

    name: str
    module: str
    bases: tuple[str | None, ...]
    members: dict[str, Bound]
    fields: tuple[tuple[str, bool, bool], ...] | None
    opaque: bool
    open: bool


Bound: TypeAlias = FunctionDefinition | Alias | Thing | ClassStatement
THING = Thing()


def read_class(node: ast.ClassDef, text: str, module: str, *, stub: bool) -> ClassStatement:
    """Read a class statement.

    Args:
        node: the statement.
        text: its source.
        module: dotted name of its module.
        stub: whether the module is a stub, which may omit members.
    """
    members: dict[str, Bound] = {}
    overloads: dict[str, list[CallSignature]] = {}
    for each in _flat(node.body):
        _bind_member(members, overloads, each)
    for pattern in _MEMBERS:
        for name in pattern.findall(text):
            members.setdefault(name, THING)
    decorators = {_last(each) for each in node.decorator_list}
    opaque = not decorators <= _KEEPING_CLASSES or any(
        k.arg != "metaclass" or _last(k.value) not in _PLAIN_METACLASSES for k in node.keywords
    )
    is_open = (
        opaque
        or stub
        or bool({"__getattr__", "__getattribute__"} & members.keys())
        or any(setting in text for setting in _SETTING)
    )
    bases = tuple(_base(each) for each in node.bases)
    fields = _fields(node) if "dataclass" in decorators else None
    return ClassStatement(node.name, module, bases, members, fields, opaque, is_open)


def bind(names: dict[str, Bound], name: str, bound: Bound) -> None:
    """Bind a name; a name that is bound in several ways is unknown."""
    known = names.get(name)
    if known is None or known == bound:
        names[name] = bound
    elif isinstance(known, FunctionDefinition) and isinstance(bound, FunctionDefinition):
        both = [s for s in (known.signature, bound.signature) if s is not None]
        names[name] = FunctionDefinition(merged(both) if len(both) > 1 else None)
    else:
        names[name] = THING


def bind_function(
    names: dict[str, Bound],
    overloads: dict[str, list[CallSignature]],
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    *,
    bound: bool,
) -> None:
    """Bind a function; its overloads are merged."""
    decorators = {_last(each) for each in node.decorator_list}
    if decorators & _DESCRIPTORS or {"setter", "deleter", "getter"} & decorators:
        names[node.name] = THING
        return
    own = bound and "staticmethod" not in decorators
    if node.name == "__new__":
        own = bound
    signature = of_definition(node.args, bound=own, stub=True)
    if not decorators <= _KEEPING:
        bind(names, node.name, FunctionDefinition(None))
    elif "overload" in decorators:
        several = overloads.setdefault(node.name, [])
        several.append(signature)
        names[node.name] = FunctionDefinition(merged(several))
    elif node.name in overloads:
        names[node.name] = FunctionDefinition(signature)
    else:
        bind(names, node.name, FunctionDefinition(signature))


def _bind_member(
    members: dict[str, Bound], overloads: dict[str, list[CallSignature]], node: ast.stmt
) -> None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            bind_function(members, overloads, node, bound=True)
        case ast.ClassDef():
            bind(members, node.name, THING)
        case ast.Assign(targets=targets):
            for target in targets:
                for each in ast.walk(target):
                    if isinstance(each, ast.Name):
                        bind(members, each.id, THING)
        case ast.AnnAssign(target=ast.Name(id=name)):
            bind(members, name, THING)
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                members[alias.asname or alias.name.split(".")[0]] = THING


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a class, including conditional ones."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For):
            for part in ("body", "orelse", "finalbody"):
                yield from _flat(getattr(node, part, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _flat(handler.body)


def _fields(node: ast.ClassDef) -> tuple[tuple[str, bool, bool], ...] | None:
    """The constructor's parameters of a dataclass; None if it generates none, or another one."""
    options = {
        keyword.arg: getattr(keyword.value, "value", None)
        for each in node.decorator_list
        if isinstance(each, ast.Call)
        for keyword in each.keywords
    }
    if options.get("init") is False:
        return None
    only_keyword = options.get("kw_only") is True
    fields = []
    for each in node.body:
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        annotation_text = ast.unparse(each.annotation)
        if "KW_ONLY" in annotation_text:
            only_keyword = True
        elif "ClassVar" not in annotation_text:
            default = _default(each.value)
            if default is not None:
                fields.append((each.target.id, default, only_keyword))
    return tuple(fields)


def _default(value: ast.expr | None) -> bool | None:
    """Whether a dataclass's field has a default; None if the constructor does not take it."""
    if not (isinstance(value, ast.Call) and _last(value) == "field"):
        return value is not None
    given = {keyword.arg: keyword.value for keyword in value.keywords}
    init = given.get("init")
    if isinstance(init, ast.Constant) and init.value is False:
        return None
    return "default" in given or "default_factory" in given


def dotted(node: ast.expr) -> str:
    """``a.b.c`` for such an expression; empty for others."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _base(node: ast.expr) -> str | None:
    """The dotted name of a base class, without type arguments."""
    return dotted(node.value if isinstance(node, ast.Subscript) else node) or None


def _last(node: ast.expr) -> str:
    """The last name of a decorator or class, called or not."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
