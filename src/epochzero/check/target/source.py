"""What a module of a library binds, read from its source and its stub without importing it."""

from __future__ import annotations

import ast
import gc
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from epochzero.check.target.model import Signature
from epochzero.check.target.signature import merged, of_definition

__all__ = [
    "THING",
    "Alias",
    "Bound",
    "Class",
    "Function",
    "Source",
    "Thing",
    "dotted",
    "parse",
    "quick",
]

LARGEST_SOURCE_BYTES = 16 << 20

# Decorators under which a function still takes what its definition says.
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
# A module that does one of these may bind names that cannot be read. Looking for plain text first is
# many times faster than the pattern.
_BINDING = ("globals()", "sys.modules[", "exec(", "vars()", "locals()")
_BINDS_MORE = re.compile(
    r"globals\(\)\[[^\]\n]*\]\s*=[^=]|globals\(\)\.(?:update|setdefault)"
    r"|[(,=:]\s*globals\(\)(?!\[|\.)|(?<!delattr\()sys\.modules\[(?:__name__|__package__)\]"
    r"|(?<![\w.])exec\(|(?<![\w.])(?:vars|locals)\(\)(?!\.(?:get|keys)\b)"
)
_SETTING = ("setattr(self", "setattr(cls", "self.__dict__", "cls.__dict__", "vars(self", "locals()")
# Two patterns, since each begins with a plain text and is fast for it.
_MEMBERS = (re.compile(r"self\.([A-Za-z]\w*)"), re.compile(r"cls\.([A-Za-z]\w*)"))


@dataclass(frozen=True, slots=True)
class Function:
    """A function; its signature where that can be told."""

    signature: Signature | None


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name for something: of a module (``module`` and ``name``), or of the same one."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Thing:
    """A constant, an object, or what cannot be told."""


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class statement.

    Attributes:
        name: of it.
        module: in which it stands.
        bases: as dotted names of that module; None for what is none (``Base[T]()``).
        members: by name; functions without ``self`` or ``cls``.
        fields: parameters of a dataclass's constructor, with whether each has a default and
            whether it is by keyword only; None for other classes.
        opaque: whether a decorator or metaclass may change how it is made.
        open: whether it may have members that cannot be read here.
    """

    name: str
    module: str
    bases: tuple[str | None, ...]
    members: dict[str, Bound]
    fields: tuple[tuple[str, bool, bool], ...] | None
    opaque: bool
    open: bool


Bound: TypeAlias = Function | Alias | Thing | Class
THING = Thing()


@dataclass(slots=True)
class Source:
    """A module.

    Attributes:
        name: dotted.
        package: whether it is one.
        names: what it binds.
        stars: modules of which it takes all public names, and those of which it takes all.
        exports: its ``__all__`` as far as it is constant; None when it has none.
        complete: whether it binds nothing else.
        submodules: names of its modules.
        hidden: names that a stub imports for itself: without ``as`` they are not the module's.
    """

    name: str
    package: bool
    names: dict[str, Bound] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    exports: set[str] | None = None
    complete: bool = True
    submodules: frozenset[str] = frozenset()
    hidden: set[str] = field(default_factory=set)


@contextmanager
def quick() -> Iterator[None]:
    """Without garbage collection: syntax trees hold no cycles, and looking for some costs most."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def parse(name: str, files: Sequence[Path], *, package: bool) -> Source:
    """The module of these files: its source, its stub, or both.

    What the source cannot tell (``conv1d = _C.conv1d``) the stub says. A file that cannot be read
    or parsed leaves the module incomplete.
    """
    found = Source(name, package, complete=bool(files))
    for number, path in enumerate(files):
        try:
            if path.stat().st_size > LARGEST_SOURCE_BYTES:
                raise ValueError("too large")
            text = path.read_bytes().decode("utf-8", "replace")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of invalid escapes in other people's texts
                tree = ast.parse(text)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            found.complete = False
            continue
        reader = _Reader(name, package, text, stub=path.suffix == ".pyi")
        reader.block(tree.body)
        _add(found, reader, fills=number > 0)
    return found


def _add(found: Source, reader: _Reader, *, fills: bool) -> None:
    """Adds what a file says to its module; a stub only fills in what the source did not tell."""
    found.hidden |= reader.hidden - found.names.keys()
    for name, bound in reader.names.items():
        known = found.names.get(name)
        if fills and known is None and found.stars and isinstance(bound, Function):
            # The source takes it from elsewhere, where it may be something that takes more.
            found.names[name] = Function(None)
        elif known is None or known in (THING, Function(None)):
            found.names[name] = bound
        elif (
            fills and isinstance(bound, Function) and isinstance(known, Alias) and not known.module
        ):
            found.names[name] = (
                bound  # `conv = _C.conv`: the stub describes what compiled code takes
            )
        elif fills and isinstance(known, Class) and isinstance(bound, Class):
            for member, said in bound.members.items():
                known.members.setdefault(member, said)
    found.stars += reader.stars
    if reader.exports is not None:
        found.exports = (found.exports or set()) | reader.exports
    found.complete = found.complete and not reader.binds_more()


class _Reader:
    """Collects the bindings of a module's statements, of every branch."""

    def __init__(self, name: str, package: bool, text: str, *, stub: bool) -> None:
        self.name = name
        self.package = package
        self.text = text
        self.stub = stub
        self.lines = text.split("\n")
        self.names: dict[str, Bound] = {}
        self.stars: list[str] = []
        self.exports: set[str] | None = None
        self.hidden: set[str] = set()
        self.open = False
        self._overloads: dict[str, list[Signature]] = {}
        self._functions: list[tuple[str, int, int]] = []
        self._told: list[tuple[int, int]] = []  # lines that bind names which are understood

    def binds_more(self) -> bool:
        """Whether the module may bind names that were not collected.

        What a function binds counts only where the module itself calls it or decorates with it.
        """
        if self.open or not any(text in self.text for text in _BINDING):
            return self.open
        asleep = [
            (first, last)
            for name, first, last in self._functions
            if f"\n{name}(" not in self.text
            and f" = {name}(" not in self.text
            and f"@{name}" not in self.text
        ]
        for found in _BINDS_MORE.finditer(self.text):
            line = self.text.count("\n", 0, found.start()) + 1
            if not any(first <= line <= last for first, last in [*self._told, *asleep]):
                return True
        return False

    def block(self, body: Iterable[ast.stmt]) -> None:
        """The statements of a block."""
        for node in body:
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name == "__getattr__":
                    self._getattr(node)
                self._functions.append((node.name, node.lineno, node.end_lineno or node.lineno))
                _bind_function(self.names, self._overloads, node, bound=False)
            case ast.ClassDef():
                _bind(self.names, node.name, self._class(node))
            case ast.Import():
                for alias in node.names:
                    # `import a.b` binds a; `import a.b as c` binds a.b.
                    module = alias.name if alias.asname else alias.name.split(".")[0]
                    _bind(self.names, alias.asname or module, Alias(module, ""))
            case ast.ImportFrom():
                self._import_from(node)
            case ast.Assign():
                for target in node.targets:
                    self._assign(target, node.value)
            case ast.AnnAssign():
                self._assign(node.target, node.value)
            case ast.AugAssign():
                self._extend(node.target, node.value)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=target, attr="extend" | "append"), args=[more]
                )
            ):
                self._extend(target, more)
            case ast.For():
                self._for(node)
            case _:
                self._nested(node)

    def _nested(self, node: ast.stmt) -> None:
        if isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars is not None:
                    self._assign(item.optional_vars, None)
        for part in ("body", "orelse", "finalbody"):
            self.block(getattr(node, part, ()))
        for handler in getattr(node, "handlers", ()):
            self.block(handler.body)
        for case in getattr(node, "cases", ()):
            self.block(case.body)

    def _for(self, node: ast.For) -> None:
        self._assign(node.target, None)
        match node.iter:
            case ast.Call(func=ast.Name(id="dir"), args=[of]) if name := dotted(of):
                if "globals()" in self._text(node):
                    self._told.append((node.lineno, node.end_lineno or node.lineno))
                    self.stars.append(f"*{name}")
            case ast.Tuple() | ast.List() | ast.Set() if "globals()" in self._text(node):
                self._constants(node, node.iter.elts)
        self._nested(node)

    def _text(self, node: ast.stmt) -> str:
        return "\n".join(self.lines[node.lineno - 1 : node.end_lineno])

    def _constants(self, node: ast.For, values: Sequence[ast.expr]) -> None:
        """``for name in ("a", "b"): globals()[f"_{name}"] = ...``."""
        keys = [
            each.slice
            for each in ast.walk(node)
            if isinstance(each, ast.Subscript) and ast.unparse(each.value) == "globals()"
        ]
        made = {
            target.id: each.value
            for each in node.body
            if isinstance(each, ast.Assign)
            for target in each.targets
            if isinstance(target, ast.Name)
        }
        for key in keys:
            for value in values:
                name = _filled(
                    made.get(key.id, key) if isinstance(key, ast.Name) else key, node, value
                )
                if name is None:
                    return
                self._offer(name)
        self._told.append((node.lineno, node.end_lineno or node.lineno))

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = self._absolute(node.module or "", node.level)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                if self.stub and alias.asname is None and node.level == 0:
                    self.hidden.add(alias.name)
                _bind(self.names, alias.asname or alias.name, Alias(module, alias.name))

    def _absolute(self, module: str, level: int) -> str:
        if not level:
            return module
        parts = self.name.split(".")
        parts = parts[: len(parts) - level + self.package]
        return ".".join([*parts, *([module] if module else [])])

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        match target:
            case ast.Name(id="__all__"):
                self.exports = set()
                self._extend(target, value)
            case ast.Name(id=name):
                if name == "__getattr__":
                    self.open = True
                known = dotted(value) if value is not None else ""
                _bind(self.names, name, Alias("", known) if known and known != name else THING)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for each in targets:
                    self._assign(each, None)
            case ast.Starred(value=inner):
                self._assign(inner, None)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                known_class = self.names.get(owner)
                if isinstance(known_class, Class):
                    known_class.members[name] = THING

    def _extend(self, target: ast.expr, value: ast.expr | None) -> None:
        """More of ``__all__``: constants; other things do not hide a name, so nothing is lost."""
        if not (isinstance(target, ast.Name) and target.id == "__all__") or value is None:
            return
        names = {
            each.value
            for each in ast.walk(value)
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        }
        self.exports = (self.exports or set()) | names

    def _getattr(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """``__getattr__`` of a module: closed when it ends with an error and compares constants."""
        last = node.body[-1]
        closed = isinstance(last, ast.Raise) and not any(_looks_up(each) for each in ast.walk(node))
        self.open = self.open or not closed
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                self._offer(each.value)
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        # What it looks names up in: literal tables of the module.
        table = re.compile(
            rf"^({'|'.join(map(re.escape, sorted(names)))})\b[^=\n]*=\s*[{{\[(]", re.M
        )
        for found in table.finditer(self.text):
            rest = self.text[found.start() : found.start() + (1 << 16)]
            body = rest.split("\n}", 1)[0].split("\n]", 1)[0].split("\n)", 1)[0]
            for word in re.findall(r"['\"](\w+)['\"]", body):
                self._offer(word)

    def _offer(self, word: str) -> None:
        if word.isidentifier():
            self.names.setdefault(word, THING)

    def _class(self, node: ast.ClassDef) -> Class:
        members: dict[str, Bound] = {}
        overloads: dict[str, list[Signature]] = {}
        for each in _flat(node.body):
            _bind_member(members, overloads, each)
        text = self._text(node)
        for pattern in _MEMBERS:
            for name in pattern.findall(text):
                members.setdefault(name, THING)
        decorators = {_last(each) for each in node.decorator_list}
        opaque = not decorators <= _KEEPING_CLASSES or any(
            k.arg != "metaclass" or _last(k.value) not in _PLAIN_METACLASSES for k in node.keywords
        )
        is_open = (
            opaque
            or self.stub
            or bool({"__getattr__", "__getattribute__"} & members.keys())
            or any(setting in text for setting in _SETTING)
        )
        bases = tuple(_base(each) for each in node.bases)
        fields = _fields(node) if "dataclass" in decorators else None
        return Class(node.name, self.name, bases, members, fields, opaque, is_open)


def _filled(key: ast.expr, loop: ast.For, value: ast.expr) -> str | None:
    """The text of an expression of a loop's variable for one of its values; None for others."""
    if isinstance(key, ast.Name):
        is_variable = isinstance(loop.target, ast.Name) and loop.target.id == key.id
        return _filled(value, loop, value) if is_variable and key is not value else None
    if isinstance(key, ast.Constant):
        return key.value if isinstance(key.value, str) else None
    if isinstance(key, ast.JoinedStr):
        parts = [
            _filled(each.value if isinstance(each, ast.FormattedValue) else each, loop, value)
            for each in key.values
        ]
        return None if None in parts else "".join(part or "" for part in parts)
    return None


def _looks_up(node: ast.AST) -> bool:
    """Whether a name is looked up in something that is no table of constants."""
    match node:
        case ast.Call(func=ast.Name(id="getattr")):
            return not (len(node.args) > 1 and isinstance(node.args[1], ast.Constant))
    return False


def _bind(names: dict[str, Bound], name: str, bound: Bound) -> None:
    """Binds a name; one that is bound in several ways is a thing of which nothing is known."""
    known = names.get(name)
    if known is None or known == bound:
        names[name] = bound
    elif isinstance(known, Function) and isinstance(bound, Function):
        both = [s for s in (known.signature, bound.signature) if s is not None]
        names[name] = Function(merged(both) if len(both) > 1 else None)
    else:
        names[name] = THING


def _bind_function(
    names: dict[str, Bound],
    overloads: dict[str, list[Signature]],
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    *,
    bound: bool,
) -> None:
    """Binds a function; overloads become one."""
    decorators = {_last(each) for each in node.decorator_list}
    if decorators & _DESCRIPTORS or {"setter", "deleter", "getter"} & decorators:
        names[node.name] = THING
        return
    own = bound and "staticmethod" not in decorators
    if node.name == "__new__":
        own = bound
    signature = of_definition(node.args, bound=own)
    if not decorators <= _KEEPING:
        _bind(names, node.name, Function(None))
    elif "overload" in decorators:
        several = overloads.setdefault(node.name, [])
        several.append(signature)
        names[node.name] = Function(merged(several))
    elif node.name in overloads:
        names[node.name] = Function(signature)
    else:
        _bind(names, node.name, Function(signature))


def _bind_member(
    members: dict[str, Bound], overloads: dict[str, list[Signature]], node: ast.stmt
) -> None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            _bind_function(members, overloads, node, bound=True)
        case ast.ClassDef():
            _bind(members, node.name, THING)
        case ast.Assign(targets=targets):
            for target in targets:
                for each in ast.walk(target):
                    if isinstance(each, ast.Name):
                        _bind(members, each.id, THING)
        case ast.AnnAssign(target=ast.Name(id=name)):
            _bind(members, name, THING)
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                members[alias.asname or alias.name.split(".")[0]] = THING


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a class, those under conditions among them."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For):
            for part in ("body", "orelse", "finalbody"):
                yield from _flat(getattr(node, part, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _flat(handler.body)


def _fields(node: ast.ClassDef) -> tuple[tuple[str, bool, bool], ...] | None:
    """The constructor's parameters of a dataclass; None when it makes none or not this way."""
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
        said = ast.unparse(each.annotation)
        if "KW_ONLY" in said:
            only_keyword = True
        elif "ClassVar" not in said:
            default = _default(each.value)
            if default is not None:
                fields.append((each.target.id, default, only_keyword))
    return tuple(fields)


def _default(value: ast.expr | None) -> bool | None:
    """Whether a dataclass's field has a default; None for one that the constructor does not take."""
    if not (isinstance(value, ast.Call) and _last(value) == "field"):
        return value is not None
    given = {keyword.arg: keyword.value for keyword in value.keywords}
    init = given.get("init")
    if isinstance(init, ast.Constant) and init.value is False:
        return None
    return "default" in given or "default_factory" in given


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of such an expression; empty for others."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _base(node: ast.expr) -> str | None:
    """The dotted name of a base class, without what stands in brackets."""
    return dotted(node.value if isinstance(node, ast.Subscript) else node) or None


def _last(node: ast.expr) -> str:
    """The last name of a decorator or class, called or not."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
