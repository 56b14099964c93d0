"""Loops: iteration by iteration if the iterations are known, else one iteration that stands for all."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from epochzero.check.program import library, python_errors
from epochzero.check.program.core import Core
from epochzero.check.program.counted_loops import IterationValue, counted
from epochzero.check.program.expressions import MOST_UNROLLED
from epochzero.check.program.frames import Arguments, Flow
from epochzero.check.program.heap import (
    Box,
    Content,
    LibraryResult,
    Member,
    Object,
    Ref,
    V,
    held,
    maker,
)
from epochzero.check.program.tensors.results import modules_of
from epochzero.check.program.tensors.values import Tensor
from epochzero.check.program.values import CHANGED, Anything, Constant, Items, Text

_ROUND = Anything("an item of what is not known")
_BARS = frozenset(
    ["tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.std.tqdm", "tqdm.notebook.tqdm", "rich.progress.track"]
)
_MOST_ROUNDS = 64
"""Limit of the iterations of nested loops that are walked one by one."""


class Loops(Core):
    """Walk loops."""

    _walked_rounds = 1

    def walk_for(self, node: ast.For | ast.AsyncFor) -> int:
        """``for``: walk its known iterations, or one that stands for all."""
        over = _walked(self.evaluate(node.iter))
        with self.loop():
            items, complete, some = self.iterated(over, node.iter)
            if complete and len(items) * self._walked_rounds <= self._most(node):
                return self._unrolled(node, items)
            first = items[0] if items else _ROUND
            numbers = over.numbers if isinstance(over, Box) else None
            if numbers is not None or _is_range(node.iter):
                first = counted(node, numbers)
            # A number or text is only the first of many; objects are all handled alike.
            item = first if isinstance(first, Ref | IterationValue) else _ROUND
            return self._abstract(node, some, lambda: self.assign(node.target, item))

    def _most(self, node: ast.For | ast.AsyncFor) -> int:
        """Limit of the iterations to walk: those over numbers are alike."""
        if _is_range(node.iter):
            return 2
        return MOST_UNROLLED if self._walked_rounds == 1 else _MOST_ROUNDS

    def _unrolled(self, node: ast.For | ast.AsyncFor, items: Sequence[V]) -> int:
        before, path = self._walked_rounds, self.path
        self._walked_rounds = before * max(1, len(items))
        ended = 0
        try:
            for item in items:
                self.assign(node.target, item)
                flow = self.execute(node.body)
                ended |= flow
                if not flow & (Flow.NEXT | Flow.CONTINUE):
                    return self._after(node, ended, broke=True)
                if flow & (Flow.BREAK | Flow.RETURN):
                    self.narrow(certain=False)
        finally:
            self._walked_rounds, self.path = before, path
        return self._after(node, ended | Flow.NEXT, broke=False)

    def walk_while(self, node: ast.While) -> int:
        """``while``: walk one iteration that stands for all."""
        with self.loop():
            self._widen(node)
            known = self.truth(self.evaluate(node.test))
            if known is False:
                return self.execute(node.orelse)
            endless = known is True and isinstance(node.test, ast.Constant)
            flow = self._abstract(node, known is True, lambda: None)
            if endless and not flow & Flow.BREAK:
                flow &= ~Flow.NEXT
            return flow & ~Flow.BREAK

    def _abstract(
        self, node: ast.For | ast.AsyncFor | ast.While, some: bool, begin: Callable[[], None]
    ) -> int:
        """Walk one iteration that stands for all."""
        self._widen(node)
        mark = self.journal.mark()
        broke = 0

        def walk() -> int:
            nonlocal broke
            begin()
            self.rounds += 1
            before, self.round_begun = self.round_begun, self.journal.mark()
            try:
                flow = self.execute(node.body)
            finally:
                self.rounds -= 1
                self.round_begun = before
            broke = flow & Flow.BREAK
            self._blur(mark)
            goes_on = flow & (Flow.NEXT | Flow.BREAK | Flow.CONTINUE)
            return (flow & ~(Flow.BREAK | Flow.CONTINUE)) | (Flow.NEXT if goes_on else 0)

        flow = walk() if some else self.either(walk, lambda: Flow.NEXT)
        if isinstance(node, ast.While):
            return flow | broke | (Flow.NEXT if not flow else 0)
        return self._after(node, flow | broke, broke=False)

    def _widen(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        """Forget what the loop changes, before an iteration that stands for all."""
        scope = self.frame.scope
        for target in _targets(node.body):
            where, key = scope.elsewhere.get(getattr(target, "id", ""), scope).names, ""
            if isinstance(target, ast.Name):
                key = target.id
            elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                owner = scope.names.get(target.value.id)
                if isinstance(owner, (Object, LibraryResult)):
                    where, key = owner.attributes, target.attr
            before = where.get(key)
            if isinstance(before, (Constant, Text, Items)):
                self.journal.set(where, key, CHANGED)
            elif isinstance(held(before), Tensor):
                self.journal.set(where, key, _of_any_size(before))

    def _blur(self, mark: int) -> None:
        """Mark the containers that an iteration has changed as incomplete."""
        for where, key in _set_of(self.journal.changed(mark)):
            now = where.get(key)
            if isinstance(now, Content):
                self.journal.set(where, key, Content(now.values, now.keys, False))
            elif isinstance(now, LibraryResult | Tensor) and isinstance(held(now), Tensor):
                # A later iteration may have computed it from the result of this one.
                self.journal.set(where, key, _of_any_size(now))

    def _after(self, node: ast.For | ast.AsyncFor, flow: int, broke: bool) -> int:
        """Walk what follows a loop: its ``else`` unless a ``break`` ended it."""
        ended = flow & (Flow.RETURN | Flow.RAISE)
        if broke:
            return ended | (Flow.NEXT if flow & Flow.BREAK else 0)
        if not flow & Flow.NEXT:
            return ended
        if flow & Flow.BREAK and node.orelse:
            return ended | self.either(lambda: self.execute(node.orelse), lambda: Flow.NEXT)
        return ended | self.execute(node.orelse)

    def iterated(self, value: V, node: ast.AST) -> tuple[list[V], bool, bool]:
        """Return the items of an iteration, whether they are all known, and whether there is at least one."""
        items, complete, some = self.iterated_known(modules_of(value) or value)
        if items is not None:
            return items, complete, some
        where = node if isinstance(node, ast.expr) else ast.Constant(None)
        if isinstance(value, Constant) and not isinstance(value.value, (str, bytes)):
            kind = "none" if python_errors.is_none(value) else "type"
            self.fails(
                kind, TypeError, f"'{python_errors.type_name(value)}' object is not iterable", node
            )
        library.consume(self, value, where, certain=True)
        if isinstance(value, Object):
            return self._iterated_object(value)
        if isinstance(value, (LibraryResult, Member)) and (name := maker(value)):
            item = Member(value, "[]")
            self.called(f"{name}.__iter__", Arguments([]), value, item, where)
            return [item], False, False
        return [_ROUND], False, False

    def _iterated_object(self, value: Object) -> tuple[list[V], bool, bool]:
        # Python indexes an object only if its class and their bases lack `__iter__`.
        has_iter = library.is_iterable_dataset(value.cls)
        for name in ("__iter__",) if has_iter else ("__iter__", "__getitem__"):
            given = Arguments([Anything("an index")] if name == "__getitem__" else [])
            result = self.own_method(value, name, given)
            if isinstance(result, Box):
                return list(result.content.values) or [_ROUND], False, False
            if result is not None:
                break
        return [_ROUND], False, False


def _walked(value: V) -> V:
    """Return the iterated value without its progress bar."""
    if isinstance(value, LibraryResult) and value.name in _BARS and value.arguments:
        return value.arguments[0]
    return value


def _of_any_size(value: V | None) -> V:
    """A tensor whose shape a loop may have changed."""
    return replace(value, holds=None) if isinstance(value, LibraryResult) else CHANGED


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"


def _targets(body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    """Yield the assignment targets of a loop, without those of nested functions."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield node
        todo += ast.iter_child_nodes(node)


def _set_of(changed: list[tuple[dict[str, object], str]]) -> list[tuple[dict[str, object], str]]:
    """Changed entries without duplicates."""
    return list({(id(where), key): (where, key) for where, key in changed}.values())
