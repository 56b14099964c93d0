"""The part of the interpreter that follows the sizes of tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable

from epochzero.check.program.core import Core
from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import Box, LibraryResult, Object, V, held
from epochzero.check.program.methods import of_container
from epochzero.check.program.tensors.results import modules_of, of_method
from epochzero.check.program.tensors.values import Misfit, Size, Tensor
from epochzero.check.program.values import Anything, Constant

_CHANGING = frozenset(["append", "extend", "insert", "add_module", "register_module", "pop"])
_RESHAPING = frozenset(["resize_", "resize_as_", "set_", "squeeze_", "swapaxes_", "t_", "transpose_",
                        "unsqueeze_"])  # fmt: skip


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
            return self.fails("shape", wrong.error, wrong.message, node, wrong.why, wrong.fix)
        if known is None or isinstance(known, Constant | Size) or _is_sizes(known):
            return result if known is None else known
        if isinstance(result, LibraryResult):
            result.holds = known
            return result
        return known

    def sized_by(
        self, result: V, chained: V | None, owner: V, name: str, given: Arguments, node: ast.expr
    ) -> V:
        """Return the result of a method, or of a chain of modules, with its known sizes."""
        if chained is not None:
            return self.sized(result, lambda: held(chained), node)
        return self.sized(result, lambda: of_method(owner, name, given), node)

    def changed_in_place(self, owner: V, name: str, given: Arguments, node: ast.AST) -> None:
        """Account for methods that change the modules of a container, or the shape of a tensor."""
        modules = modules_of(owner)
        if modules is not None and name in _CHANGING:
            added = given.positional[-1:] if name == "add_module" else given.positional
            method = "append" if name == "add_module" else name
            of_container(self.journal, modules, method, added)
        elif name in _RESHAPING and isinstance(held(owner), Tensor):
            self._forget(owner, node)

    def _forget(self, owner: V, node: ast.AST) -> None:
        """Forget the shape of a tensor."""
        if isinstance(owner, LibraryResult):
            owner.holds = None
        named = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None  # fmt: skip
        if isinstance(named, ast.Name):
            scope = self.frame.scope
            where = scope.elsewhere.get(named.id, scope).names
            if where.get(named.id) is owner and not isinstance(owner, LibraryResult):
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


def _is_sizes(value: V) -> bool:
    """Whether a value is the shape of a tensor, or a part of it."""
    if not isinstance(value, Box) or value.kind != "tuple" or not value.content.values:
        return False
    return all(isinstance(each_value, Constant | Size) for each_value in value.content.values)
