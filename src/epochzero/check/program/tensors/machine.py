"""The part of the interpreter that follows the sizes of tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable

from epochzero.check.program.core import Core
from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import Box, LibraryResult, Object, V, held
from epochzero.check.program.methods import of_container
from epochzero.check.program.tensors.results import modules_of, of_method
from epochzero.check.program.tensors.values import Misfit, NotKnown, Tensor
from epochzero.check.program.values import Anything

_CHANGING = frozenset(["append", "extend", "insert", "add_module", "register_module", "pop"])
_RESHAPING = "resize_ resize_as_ set_ squeeze_ swapaxes_ t_ transpose_ unsqueeze_".split()


class Tensors(Core):
    """Follow tensor sizes through the results of libraries."""

    def sized(self, result: V, find: Callable[[], V | None], node: ast.AST) -> V:
        """Return a result with its known sizes; record the failure if they are rejected.

        Raises:
            PathEnds: the program catches the exception.
        """
        try:
            known = find()
        except Misfit as wrong:
            return self.fails("shape", RuntimeError, wrong.message, node, wrong.why, wrong.fix)
        except NotKnown:
            return result
        holds = isinstance(known, Tensor) or (isinstance(known, Box) and known.kind == "list")
        if not holds or not isinstance(result, LibraryResult):
            return result if known is None else known
        result.holds = known
        return result

    def changed_in_place(self, owner: V, name: str, given: Arguments, node: ast.AST) -> None:
        """Account for methods that change the modules of a container, or the shape of a tensor."""
        modules = modules_of(owner)
        if modules is not None and name in _CHANGING:
            if name == "add_module":
                of_container(self.journal, modules, "append", given.positional[-1:])
            else:
                of_container(self.journal, modules, name, given.positional)
        elif name not in _RESHAPING or not isinstance(held(owner), Tensor):
            return
        elif isinstance(owner, LibraryResult):
            owner.holds = None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named, scope = node.func.value, self.frame.scope
            if not isinstance(named, ast.Name):
                return
            where = scope.elsewhere.get(named.id, scope).names
            if where.get(named.id) is owner:
                self.journal.set(where, named.id, Anything("changed in place"))

    def of_chain(self, owner: V, given: Arguments, node: ast.expr) -> V | None:
        """Return the output of a ``Sequential``; None if its modules are unknown."""
        modules = modules_of(owner, "torch.nn.Sequential")
        if modules is None or not modules.content.complete or len(given.positional) != 1:
            return None
        value = given.positional[0]
        for module in modules.content.values:
            value = self._passed(module, Arguments([value]), node)
        return value

    def _passed(self, module: V, given: Arguments, node: ast.expr) -> V:
        """Return the output of a module in a ``Sequential``; the layer of a library adds no event."""
        if isinstance(module, Object):
            return self.apply(module, given, node)
        if (inner := self.of_chain(module, given, node)) is not None:
            return inner
        unknown = Anything("what a layer gives")
        return self.sized(unknown, lambda: of_method(module, "__call__", given), node)
