"""Assignments and similar statements."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from epochzero.check.program import python_errors
from epochzero.check.program.escapes import escape
from epochzero.check.program.expressions import Expressions
from epochzero.check.program.frames import Arguments, Flow
from epochzero.check.program.heap import (
    BoundFunction,
    Box,
    Class,
    Content,
    Function,
    JobModule,
    LibraryResult,
    Member,
    Object,
    V,
    in_classes,
    maker,
)
from epochzero.check.program.methods import store_item
from epochzero.check.program.namespaces import set_any_name
from epochzero.check.program.tensors.results import modules_of
from epochzero.check.program.values import CHANGED, Anything, Constant, External


class Storing(Expressions):
    """Store values in names, attributes and items."""

    def assignment(self, node: ast.Assign) -> int:
        """``target = value``, for one target or several."""
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)
        return Flow.NEXT

    def annotated(self, node: ast.AnnAssign) -> int:
        """``target: annotation = value``."""
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))
        return Flow.NEXT

    def augmented(self, node: ast.AugAssign) -> int:
        """``target += value`` and the like."""
        load: ast.expr = node.target
        before = self.evaluate(load)
        value = self.evaluate(node.value)
        if isinstance(before, Box) and isinstance(node.op, ast.Add) and before.kind == "list":
            # The list is changed in place, also under its other names.
            other = value.content if isinstance(value, Box) else Content((), (), False)
            complete = before.content.complete and other.complete
            joined = Content((*before.content.values, *other.values), (), complete)
            self.journal.set(before.state, "content", joined)
            return Flow.NEXT
        result = self.operate(node.op, before, value, node)
        self.assign(node.target, CHANGED if self._is_counted_on(node.target) else result)
        return Flow.NEXT

    def _is_counted_on(self, target: ast.expr) -> bool:
        """Whether it is from before the loop whose one iteration stands for all, and each iteration changes it."""
        where: dict[str, Any] | None = None
        key = ""
        if isinstance(target, ast.Name):
            scope = self.frame.scope.elsewhere.get(target.id)
            where, key = scope.names if scope else None, target.id
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            owner = self.evaluate(target.value)
            where, key = owner.attributes if isinstance(owner, Object) else None, target.attr
        return (
            bool(self.rounds)
            and where is not None
            and not any(
                space is where and name == key
                for space, name in self.journal.changed(self.round_begun)
            )
        )

    def assign(self, target: ast.expr, value: V) -> None:
        """Assign a value to a target."""
        match target:
            case ast.Name():
                self.store_name(target.id, value)
            case ast.Attribute():
                self._store_attribute(self.evaluate(target.value), target.attr, value, target)
            case ast.Subscript():
                self._store_item(self.evaluate(target.value), target, value)
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, value, target)
            case ast.Starred():
                self.assign(target.value, value)

    def store_name(self, name: str, value: V) -> None:
        """Bind a name, in the scope that ``global`` or ``nonlocal`` selects."""
        scope = self.frame.scope
        self.journal.set(scope.elsewhere.get(name, scope).names, name, value)

    def _store_attribute(self, owner: V, name: str, value: V, node: ast.AST) -> None:
        match owner:
            case Object() if isinstance(
                setter := in_classes(owner.cls.line(), f"{name}.setter"), Function
            ):
                where = node if isinstance(node, ast.expr) else ast.Constant(None)
                self.apply(BoundFunction(owner, setter), Arguments([value]), where)
            case Object() | LibraryResult() if name == "__dict__":
                set_any_name(self.journal, owner)
            case Object() | LibraryResult():
                self.journal.set(owner.attributes, name, value)
            case Constant(value=None):
                message = f"'NoneType' object has no attribute '{name}'"
                self.fails("none", AttributeError, message, node)
            case Class() | JobModule():
                self.journal.set(owner.names, name, value)
            case Member() | Anything():
                escape(self.journal, [value])
        if isinstance(owner, (External, LibraryResult)):
            self.looked(owner, name, node, item=False, found=None, stored=value)

    def _store_item(self, owner: V, target: ast.Subscript, value: V) -> None:
        key = self.evaluate(target.slice)
        if isinstance(owner, Constant) or (isinstance(owner, Box) and owner.kind == "tuple"):
            kind = "none" if python_errors.is_none(owner) else "type"
            message = f"'{python_errors.type_name(owner)}' object does not support item assignment"
            self.fails(kind, TypeError, message, target)
        elif isinstance(box := modules_of(owner) or owner, Box):
            store_item(self.journal, box, key, value)
        else:
            escape(self.journal, [value])
        if isinstance(key, Constant) and isinstance(key.value, str):
            if owner == External("os.environ"):
                self.journal.set(self.environment, key.value, value)
            if isinstance(owner, (External, LibraryResult, Box)):
                self.looked(owner, key.value, target, item=True, found=None, stored=value)

    def _unpack(self, targets: Sequence[ast.expr], value: V, node: ast.AST) -> None:
        if isinstance(value, (LibraryResult, Member, Anything)):
            for at, target in enumerate(targets):
                part: V = Anything("unpacked from what is not known")
                if maker(value) and not isinstance(target, ast.Starred):
                    part = Member(value, f"[{at}]")
                self.assign(target, part)
            return
        if isinstance(value, Constant) and not isinstance(value.value, (str, bytes)):
            kind = "none" if python_errors.is_none(value) else "type"
            message = f"cannot unpack non-iterable {python_errors.type_name(value)} object"
            value = self.fails(kind, TypeError, message, node)
        items, complete, _ = self.iterated(value, node)
        if complete and (not self.rounds or getattr(value, "kind", "") == "tuple"):
            self._count(targets, len(items), node)
        stars = [at for at, target in enumerate(targets) if isinstance(target, ast.Starred)]
        if stars and complete:
            behind = len(targets) - stars[0] - 1
            end = len(items) - behind
            items = [*items[: stars[0]], Box.of("list", items[stars[0] : end]), *items[end:]]
        for at, target in enumerate(targets):
            known = at < len(items) and (complete or not stars or at < stars[0])
            self.assign(target, items[at] if known else Anything("unpacked from what is not known"))

    def _count(self, targets: Sequence[ast.expr], given: int, node: ast.AST) -> None:
        """Record a number of values that differs from the number of targets."""
        has_star = any(isinstance(target, ast.Starred) for target in targets)
        wanted = len(targets) - has_star
        if given < wanted:
            least = "at least " if has_star else ""
            message = f"not enough values to unpack (expected {least}{wanted}, got {given})"
            self.fails("unpack", ValueError, message, node)
        elif given > wanted and not has_star:
            message = f"too many values to unpack (expected {wanted})"
            self.fails("unpack", ValueError, message, node)

    def delete(self, node: ast.Delete) -> int:
        """``del target``; the content of a container is unknown after one of its items is deleted."""
        for target in node.targets:
            if isinstance(target, ast.Name):
                scope = self.frame.scope
                self.journal.remove(scope.elsewhere.get(target.id, scope).names, target.id)
            elif isinstance(target, ast.Subscript):
                owner = self.evaluate(target.value)
                if isinstance(owner, Box):
                    self.journal.set(owner.state, "content", Content((), (), False))
        return Flow.NEXT

    def declare_global(self, node: ast.Global) -> int:
        """``global name``."""
        scope = self.frame.scope
        top = scope
        while top.parent is not None:
            top = top.parent
        scope.elsewhere = {**scope.elsewhere, **dict.fromkeys(node.names, top)}
        return Flow.NEXT

    def declare_nonlocal(self, node: ast.Nonlocal) -> int:
        """``nonlocal name``."""
        for name in node.names:
            scope = self.frame.scope
            outer = scope.parent
            while outer is not None and name not in outer.names:
                outer = outer.parent
            if outer is not None:
                scope.elsewhere = {**scope.elsewhere, name: outer}
        return Flow.NEXT
