"""``globals()``, and ``exec`` of the text of a file: code that runs in the namespace of its caller."""

from __future__ import annotations

import ast
from dataclasses import replace

from epochzero.check.program.core import Core
from epochzero.check.program.files import read_by
from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import Box, Content, JobModule, LibraryResult, Scope, V
from epochzero.check.program.model import Module
from epochzero.check.program.namespaces import namespace, set_any_name


def global_names(machine: Core) -> Box | None:
    """The names of the module whose code runs: what ``globals()`` returns."""
    scope = _outermost(machine.frame.scope)
    for opened_file in machine.opened.values():
        if opened_file.names is scope.names:
            return namespace(opened_file, complete=False)
    return None


def _outermost(scope: Scope) -> Scope:
    while scope.parent is not None:
        scope = scope.parent
    return scope


def execute(machine: Core, given: Arguments, node: ast.expr) -> None:
    """``exec``: run the text of a file of the job; any other text may bind any name.

    Args:
        machine: the interpreter.
        given: the arguments of ``exec``.
        node: the call.
    """
    scope = machine.frame.scope
    target = given.get(1)
    owner = target.mirrors if isinstance(target, Box) else None
    if isinstance(owner, JobModule):
        scope = _outermost(scope)
    elif target is not None:
        if isinstance(target, Box):
            machine.journal.set(target.state, "content", Content((), (), False))
        machine.unknown("what exec runs", "the names that it binds are in a dictionary", node)
        return
    module = _source_of(machine, given.positional[0]) if given.positional else None
    if module is not None and module.tree is not None:
        _run(machine, module, scope, node)
        return
    machine.unknown("what exec runs", "its text is not known", node)
    for opened_file in machine.opened.values():
        if opened_file.names is scope.names:
            set_any_name(machine.journal, opened_file)


def _source_of(machine: Core, code: V) -> Module | None:
    """The file whose text is executed; None if the text comes from elsewhere."""
    if isinstance(code, LibraryResult) and code.name == "builtins.compile" and code.arguments:
        code = code.arguments[0]
    path = read_by(code) if isinstance(code, LibraryResult) else None
    return None if path is None else machine.modules.source(machine.job.folder / path)


def _run(machine: Core, module: Module, scope: Scope, node: ast.expr) -> None:
    outer = machine.frame
    if module.path in machine.importing:
        return
    machine.importing.append(module.path)
    inner = Scope(scope.names, module, scope.parent, elsewhere=scope.elsewhere, own=scope.own)
    if scope.parent is not None:
        # Names that it binds do not become variables of the calling function.
        inner = Scope({}, module, scope)
    machine.frame = replace(outer, scope=inner, via=(*outer.via, machine.place(node)))
    try:
        machine.execute(module.tree.body if module.tree is not None else ())
    finally:
        machine.frame = outer
        machine.importing.pop()
