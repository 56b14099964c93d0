"""The names that a module of a library binds, read from its source and its stub without importing it."""

from __future__ import annotations

import ast
import gc
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from epochzero.check.target.definitions import (
    THING,
    Alias,
    Bound,
    ClassStatement,
    FunctionDefinition,
    bind,
    bind_function,
    dotted,
    read_class,
)
from epochzero.check.target.model import CallSignature

LARGEST_SOURCE_BYTES = 16 << 20

# A module that matches may bind names that cannot be read. Searching for plain text first is many times faster than the
# pattern.
_BINDING = ("globals()", "sys.modules[", "exec(", "vars()", "locals()")
_BINDS_MORE = re.compile(
    r"globals\(\)\[[^\]\n]*\]\s*=[^=]|globals\(\)\.(?:update|setdefault)"
    r"|[(,=:]\s*globals\(\)(?!\[|\.)|(?<!delattr\()sys\.modules\[(?:__name__|__package__)\]"
    r"|(?<![\w.])exec\(|(?<![\w.])(?:vars|locals)\(\)(?!\.(?:get|keys)\b)"
)


@dataclass(slots=True)
class ModuleSource:
    """A module.

    Attributes:
        name: dotted name.
        package: whether it is a package.
        names: its bindings.
        stars: modules from which it imports all public names, and those from which it imports all names.
        exports: its ``__all__`` as far as it is constant; None if it has none.
        complete: whether it binds nothing else.
        submodules: names of its modules.
        hidden: names that a stub imports for itself: without ``as`` they are not exported.
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
    """Without garbage collection: syntax trees have no cycles, and the search for cycles takes most of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def parse(name: str, files: Sequence[Path], *, package: bool) -> ModuleSource:
    """Read a module from its source, its stub, or both.

    The stub provides what the source does not determine (``conv1d = _C.conv1d``). A file that cannot be read or parsed makes
    the module incomplete.
    """
    found = ModuleSource(name, package, complete=bool(files))
    for number, path in enumerate(files):
        try:
            if path.stat().st_size > LARGEST_SOURCE_BYTES:
                raise ValueError("too large")
            text = path.read_bytes().decode("utf-8", "replace")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about invalid escapes in the code of libraries
                tree = ast.parse(text)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            found.complete = False
            continue
        reader = _Reader(name, package, text, stub=path.suffix == ".pyi")
        reader.block(tree.body)
        _add(found, reader, fills=number > 0)
    return found


def _add(found: ModuleSource, reader: _Reader, *, fills: bool) -> None:
    """Add the bindings of a file to its module; a stub only adds what the source did not determine."""
    found.hidden |= reader.hidden - found.names.keys()
    for name, bound in reader.names.items():
        known = found.names.get(name)
        if fills and known is None and found.stars and isinstance(bound, FunctionDefinition):
            # The source imports it from elsewhere, where it may have more parameters.
            found.names[name] = FunctionDefinition(None)
        elif known is None or known in (THING, FunctionDefinition(None)):
            found.names[name] = bound
        elif (
            fills
            and isinstance(bound, FunctionDefinition)
            and isinstance(known, Alias)
            and not known.module
        ):
            found.names[name] = (
                bound  # `conv = _C.conv`: the stub has the parameters of the compiled function
            )
        elif fills and isinstance(known, ClassStatement) and isinstance(bound, ClassStatement):
            for member, definition in bound.members.items():
                known.members.setdefault(member, definition)
    found.stars += reader.stars
    if reader.exports is not None:
        found.exports = (found.exports or set()) | reader.exports
    found.complete = found.complete and not reader.binds_more()


class _Reader:
    """Collect the bindings of a module's statements, in all branches."""

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
        self._overloads: dict[str, list[CallSignature]] = {}
        self._functions: list[tuple[str, int, int]] = []
        self._understood: list[tuple[int, int]] = []  # lines whose bindings are understood

    def binds_more(self) -> bool:
        """Whether the module may bind names that were not collected.

        Bindings in a function count only if the module calls it or decorates with it.
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
            if not any(first <= line <= last for first, last in [*self._understood, *asleep]):
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
                bind_function(self.names, self._overloads, node, bound=False)
            case ast.ClassDef():
                bind(
                    self.names,
                    node.name,
                    read_class(node, self._text(node), self.name, stub=self.stub),
                )
            case ast.Import():
                for alias in node.names:
                    # `import a.b` binds a; `import a.b as c` binds a.b.
                    module = alias.name if alias.asname else alias.name.split(".")[0]
                    bind(self.names, alias.asname or module, Alias(module, ""))
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
                    self._understood.append((node.lineno, node.end_lineno or node.lineno))
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
        self._understood.append((node.lineno, node.end_lineno or node.lineno))

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = self._absolute(node.module or "", node.level)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                if self.stub and alias.asname is None and node.level == 0:
                    self.hidden.add(alias.name)
                bind(self.names, alias.asname or alias.name, Alias(module, alias.name))

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
                bind(self.names, name, Alias("", known) if known and known != name else THING)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for each in targets:
                    self._assign(each, None)
            case ast.Starred(value=inner):
                self._assign(inner, None)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                known_class = self.names.get(owner)
                if isinstance(known_class, ClassStatement):
                    known_class.members[name] = THING

    def _extend(self, target: ast.expr, value: ast.expr | None) -> None:
        """Additions to ``__all__``: constants; others hide no name, so nothing is lost."""
        if not (isinstance(target, ast.Name) and target.id == "__all__") or value is None:
            return
        names = {
            each.value
            for each in ast.walk(value)
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        }
        self.exports = (self.exports or set()) | names

    def _getattr(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """``__getattr__`` of a module: complete if it ends with an error and compares constants."""
        last = node.body[-1]
        closed = isinstance(last, ast.Raise) and not any(_looks_up(each) for each in ast.walk(node))
        self.open = self.open or not closed
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                self._offer(each.value)
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        # The tables in which it looks up names: literals of the module.
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


def _filled(key: ast.expr, loop: ast.For, value: ast.expr) -> str | None:
    """The text of an expression for one value of a loop's variable; None for others."""
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
    """Whether a name is looked up in something that is not a table of constants."""
    match node:
        case ast.Call(func=ast.Name(id="getattr")):
            return not (len(node.args) > 1 and isinstance(node.args[1], ast.Constant))
    return False
