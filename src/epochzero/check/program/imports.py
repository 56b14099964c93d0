"""Imports: each module of the job is executed once."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from epochzero.check.program.assignments import Storing
from epochzero.check.program.binding import own_names
from epochzero.check.program.frames import CallFrame, Flow
from epochzero.check.program.heap import Box, JobModule, Scope, V
from epochzero.check.program.values import Anything, Constant, External

_NO_PACKAGE = "attempted relative import with no known parent package"
_BEYOND = "attempted relative import beyond top-level package"


class Imports(Storing):
    """Import modules, and walk those of the job."""

    def import_modules(self, node: ast.Import) -> int:
        """``import module``."""
        for alias in node.names:
            opened = self.open(alias.name, node)
            if opened is None:
                self.imported(alias.name, (), node)
            name = alias.asname or alias.name.partition(".")[0]
            top = alias.name if alias.asname else name
            self.store_name(name, self.opened.get(top) or External(top))
        return Flow.NEXT

    def import_from(self, node: ast.ImportFrom) -> int:
        """``from module import name``."""
        name = self._absolute(node)
        if node.level and name == (node.module or ""):
            outside = "." not in self.module.name and not self.job.module
            self.fails("import", ImportError, _NO_PACKAGE if outside else _BEYOND, node)
        opened = self.open(name, node) if name else None
        if opened is None:
            if name:
                self.imported(name, tuple(alias.name for alias in node.names), node)
            for alias in node.names:
                if alias.name != "*":
                    value = self.external_attribute(External(name), alias.name)
                    self.store_name(alias.asname or alias.name, value)
            return Flow.NEXT
        for alias in node.names:
            if alias.name == "*":
                self._import_all(opened)
                continue
            self.store_name(alias.asname or alias.name, self._member(opened, alias.name, node))
        return Flow.NEXT

    def _absolute(self, node: ast.ImportFrom) -> str:
        """The module of a ``from``, with relative names resolved."""
        if not node.level:
            return node.module or ""
        package = self.module.name
        if package == "__main__":
            package = self.job.module
            package = f"{package}.__main__" if package and self._is_package(package) else package
        if self.module.file.name == "__init__.py":
            package = f"{package}.__init__"
        above = package.split(".")[: -node.level]
        return ".".join([*above, *([node.module] if node.module else [])])

    def _is_package(self, name: str) -> bool:
        found = self.modules.find(name)
        return found is not None and (found.is_dir() or found.name == "__init__.py")

    def _import_all(self, opened: JobModule) -> None:
        exported = opened.names.get("__all__")
        if isinstance(exported, Box):
            names = [
                str(value.value) for value in exported.content.values if isinstance(value, Constant)
            ]
        else:
            names = [name for name in opened.names if not name.startswith("_")]
        for name in names:
            if name in opened.names:
                self.store_name(name, opened.names[name])

    def _member(self, opened: JobModule, name: str, node: ast.AST) -> V:
        if name in opened.names:
            return opened.names[name]
        if (inner := self.open(f"{opened.name}.{name}", node)) is not None:
            return inner
        module = opened.module
        tree = None if module is None else module.tree
        bound = None if module is None or tree is None else own_names(module, tree)
        if opened.name in self.importing and name in (bound or ()):
            message = (
                f"cannot import name '{name}' from partially initialized module '{opened.name}' "
                "(most likely due to a circular import)"
            )
            return self.fails("import", ImportError, message, node)
        if opened.is_closed:
            return Anything(f"{opened.name} has no {name} that is known")
        return self.attribute(opened, name, node)

    def open(self, name: str, node: ast.AST) -> JobModule | None:
        """Return a module of the job, and execute it on first use; None if it is not part of the job."""
        found: JobModule | None = None
        for end in [at for at, sign in enumerate(f"{name}.") if sign == "."]:
            part = name[:end]
            if part not in self.opened and self.modules.find(part) is None:
                return None
            found = self.opened.get(part) or self._execute_module(part, node)
            if found is None:
                return None
        return found

    def _execute_module(self, name: str, node: ast.AST) -> JobModule | None:
        module = self.modules.load(name)
        if module is None and not self._is_package(name):
            return None
        opened = JobModule(name, {}, module)
        self.opened[name] = opened
        if module is not None:
            via = (*self.frame.via, self.place(node))
            self.run_module(opened, via)
        parent, _, last = name.rpartition(".")
        if parent in self.opened:
            self.opened[parent].names[last] = opened
        return opened

    def run_module(self, opened: JobModule, via: Sequence[object]) -> None:
        """Execute the body of a module, once."""
        module = opened.module
        assert module is not None
        names = opened.names
        names["__name__"] = Constant(module.name)
        names["__file__"] = Constant(module.file.as_posix())
        names["__doc__"] = Anything("a docstring")
        if module.tree is None:
            return
        outer = getattr(self, "frame", None)
        before, self.path = self.path, replace(self.path, loops=0)
        own = own_names(module, module.tree)
        opened.is_closed = own is not None and "__getattr__" not in own
        self.frame = CallFrame(Scope(names, module, own=own or frozenset()), "", tuple(via))  # type: ignore[arg-type]
        self.importing.append(opened.name)
        if outer is not None:
            self.frame.phase = outer.phase
        try:
            self.execute(module.tree.body)
        finally:
            self.importing.pop()
            self.path = before
            if outer is not None:
                self.frame = outer
