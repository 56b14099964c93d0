"""An import hook: the user's modules are rewritten, and chosen libraries adjusted once imported."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any

from epochzero.check.dryrun.child.claimed import with_notes
from epochzero.check.dryrun.child.frames import Roots
from epochzero.check.dryrun.child.rewrite import rewritten

Seen = Callable[[ast.Module, str], None]
Adjust = Callable[[ModuleType], None]
Claims = Mapping[str, Collection[int]]


def compiled(source: bytes, path: str, seen: Seen, claims: Claims) -> CodeType:
    """The code of a user's module with its loops limited; ``seen`` gets it as it was written.

    Lines in ``claims`` (by path) are noted when they have run.

    Raises:
        SyntaxError: it is no Python.
    """
    tree = ast.parse(source, path)
    seen(tree, path)
    lines = claims.get(os.path.realpath(path), ())
    tree = with_notes(tree, lines) if lines else tree
    return compile(rewritten(tree), path, "exec", dont_inherit=True)


class Finder(importlib.abc.MetaPathFinder):
    """Stands in front of the interpreter's own finders.

    Args:
        roots: of the user's code.
        seen: is shown each module of the user's.
        claims: lines of the user's files that are noted when they have run.
        adjusted: by the name of a library's module what is done once it is imported, all that name it in turn.
    """

    def __init__(
        self, roots: Roots, seen: Seen, claims: Claims, *adjusted: Mapping[str, Adjust]
    ) -> None:
        self._roots = roots
        self._seen = seen
        self._claims = claims
        self._adjusted = {
            name: [table[name] for table in adjusted if name in table]
            for name in set().union(*adjusted)
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module as the other finders find it, loaded in our way where that is wanted."""
        spec = self._by_others(name, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return spec
        if name in self._adjusted:
            spec.loader = _Adjusting(name, spec.loader.path, self._adjusted.pop(name))
        elif self._roots.holds(spec.loader.path):
            spec.loader = _Rewriting(name, spec.loader.path, self._seen, self._claims)
        return spec

    def _by_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is not self and (find := getattr(finder, "find_spec", None)):
                spec: importlib.machinery.ModuleSpec | None = find(name, path, target)
                if spec is not None:
                    return spec
        return None


class _Rewriting(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, seen: Seen, claims: Claims) -> None:
        super().__init__(name, path)
        self._seen = seen
        self._claims = claims

    def get_code(self, fullname: str) -> CodeType:
        """The rewritten code; never that of a cache, and none is written."""
        return compiled(self.get_data(self.path), self.path, self._seen, self._claims)


class _Adjusting(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, adjust: Sequence[Adjust]) -> None:
        super().__init__(name, path)
        self._adjust = adjust

    def exec_module(self, module: Any) -> None:
        """Import it, then adjust it."""
        super().exec_module(module)
        for adjust in self._adjust:
            adjust(module)
