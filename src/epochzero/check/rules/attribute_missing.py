"""The job uses a name that its class or module does not have."""

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from epochzero.check.program.events import Lookup, argument
from epochzero.check.program.lookups import MODULE_MEMBERS
from epochzero.check.program.syntax import Code, code_of
from epochzero.check.program.values import Constant, Instance
from epochzero.check.rule import (
    Claims,
    JobView,
    Module,
    Program,
    Rule,
    claim_at,
    claim_failure,
    failures,
    guarded,
)
from epochzero.file_access import exists, open_file

_Missing = tuple[ast.AST, str, str, frozenset[str]]
_DYNAMIC = frozenset({"setattr", "vars", "__dict__", "globals", "locals", "exec"})
_WRAPPERS = {
    "torch.nn.parallel.DistributedDataParallel": "DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel": "DistributedDataParallel",
    "torch.nn.DataParallel": "DataParallel",
    "torch.nn.parallel.DataParallel": "DataParallel",
}
_OF_WRAPPER = frozenset(
    """
    module device device_ids output_device dim device_type logger static_graph reducer
    process_group broadcast_buffers find_unused_parameters require_backward_grad_sync
    require_forward_param_sync no_sync join join_hook join_device join_process_group
    register_comm_hook gradient_as_bucket_view parameters_to_ignore gather scatter replicate
    parallel_apply src_device_obj mixed_precision is_multi_device_module bucket_bytes_cap
    will_sync_module_buffers
    """.split()
)
_RENAMED = {
    ("dict", "has_key"): "`in`",
    ("dict", "iteritems"): "items",
    ("dict", "iterkeys"): "keys",
    ("dict", "itervalues"): "values",
    ("list", "add"): "append",
    ("list", "push"): "append",
    ("set", "append"): "add",
    ("str", "decode"): "the text itself: it is already decoded",
}
"""What to write in place of a name of Python 2 or of another language."""
_NAMESPACE = "Namespace"
"""Objects that argparse returns: they have the defined options and no other attributes."""


def _check(view: JobView) -> Claims:
    reach = view.reach
    stored = _stored(view.program)
    reported: set[tuple[str, int, str]] = set()
    for module in view.modules:
        for node, name, owner, others in _of_imports(view.program, module, code_of(module)):
            at = reach.at(module, node)
            if at is None or guarded(at, ImportError):
                continue
            reported.add((at.place.path, at.place.line, name))
            near = get_close_matches(name, others, n=1)
            yield claim_at(
                at,
                category="library_not_found",
                severity=reach.severity(at),
                message=f"{owner} has no {name}.",
                consequence=f"ImportError: cannot import name '{name}' from '{owner}'",
                fix=f"Did you mean {near[0]}?" if near else f"Define {name}, or correct its name.",
            )
    for look, owner in (
        _of_objects(view.program, stored or frozenset()) if stored is not None else ()
    ):
        where = (look.at.place.path, look.at.place.line, look.name)
        if where not in reported and not guarded(look.at, AttributeError):
            reported.add(where)
            known = view.program.options if owner == _NAMESPACE else stored or ()
            near = get_close_matches(look.name, known, n=1)
            yield claim_at(
                look.at,
                message=f"{owner} has no {look.name}.",
                consequence=f"AttributeError: '{owner}' object has no attribute '{look.name}'",
                fix=f"The wrapped model has it: write .module.{look.name}."
                if owner in _WRAPPERS.values()
                else f"Did you mean {near[0]}?"
                if near
                else f"Define {look.name}, or correct its name.",
            )
    for failed in failures(view.program, "attribute"):
        name = failed.message.rsplit("'", 2)[1]
        if (failed.at.place.path, failed.at.place.line, name) not in reported:
            yield claim_failure(
                failed,
                message=f"{name} does not exist: {failed.message}.",
                fix=_instead(failed.message, name),
            )


def _instead(message: str, name: str) -> str:
    """What to write in place of a missing name."""
    owner = message.split("'")[1]
    if "module" in message and owner in sys.stdlib_module_names:
        return f"The job's {owner} hides the Python module of the same name: rename it."
    if "partially" in message:
        return "The modules import each other: move the import into the function that uses it."
    known = dir(getattr(builtins, owner, None)) if hasattr(builtins, owner) else []
    near = _RENAMED.get((owner, name)) or next(iter(get_close_matches(name, known, n=1)), "")
    return f"Did you mean {near}?" if near else f"Define {name}, or correct its name."


def _of_objects(program: Program, stored: frozenset[str]) -> Iterator[tuple[Lookup, str]]:
    """Attributes that objects are known to lack, with the class of the object.

    A wrapper for several processes has the methods of modules, but not those of the wrapped model.
    """
    asked = _asked(program)
    for look in program.lookups:
        if look.item or look.stored or look.name[:1] == "_" or look.name in asked:
            continue
        if not isinstance(look.on, Instance):
            continue
        known = look.on.own or look.on.made_by.endswith(f".{_NAMESPACE}")
        if known and look.found is False and look.name not in stored:
            yield look, look.on.made_by.rpartition(".")[2]
        elif look.on.made_by in _WRAPPERS and _is_of_inner(program, look):
            yield look, _WRAPPERS[look.on.made_by]


def _is_of_inner(program: Program, look: Lookup) -> bool:
    """Whether neither the wrapper nor any module has the attribute, and nothing sets it."""
    assert isinstance(look.on, Instance)
    first = argument(look.on, 0, "module")
    is_set = any(
        lookup.stored and lookup.name == look.name and lookup.on == look.on
        for lookup in program.lookups
    )
    known = look.name in MODULE_MEMBERS | _OF_WRAPPER
    return isinstance(first, Instance) and not known and not is_set


def _asked(program: Program) -> frozenset[str]:
    """The names that the job checks before it uses them: ``hasattr(model, "name")``."""
    return frozenset(
        call.arguments[1].value
        for call in program.calls
        if call.name in ("builtins.hasattr", "builtins.getattr")
        and len(call.arguments) > 1
        and isinstance(call.arguments[1], Constant)
        and isinstance(call.arguments[1].value, str)
    )


def _stored(program: Program) -> frozenset[str] | None:
    """All names that the job assigns after a dot or in a class.

    None if the job may create names at run time.
    """
    found: set[str] = set()
    for module in program.modules.values():
        code = code_of(module)
        if _DYNAMIC & (code.names | code.attributes):
            return None
        found |= code.set_attributes
        for cls in code.of(ast.ClassDef):
            found |= code.locals.get(cls, frozenset())
        # register_buffer("mean", ...) and its like name attributes in a text.
        found |= {
            node.value
            for node in code.of(ast.Constant)
            if isinstance(node.value, str) and node.value.isidentifier()
        }
    return frozenset(found)


_BUILDS = ("setup.py", "CMakeLists.txt", "pyproject.toml", "meson.build")
_MOST_ABOVE = 6
_MOST_READ = 1 << 20


def _is_built(package: Module, name: str) -> bool:
    """Whether a module of a package may be compiled: a build file above the package names it."""
    folder = package.file.parent
    if any(folder.glob(f"{name}.*")):
        return True
    word = re.compile(rf"\b{re.escape(name)}\b")
    files = (above / b for above in [folder, *folder.parents][:_MOST_ABOVE] for b in _BUILDS)
    return any(word.search(_beginning(file)) for file in files)


def _beginning(file: Path) -> str:
    try:
        with open_file(file) as opened:
            return opened.read(_MOST_READ).decode("utf-8", "replace")
    except OSError:
        return ""


def _of_imports(program: Program, module: Module, code: Code) -> Iterator[_Missing]:
    """``from own_module import name`` of a name that the module lacks."""
    for node in code.of(ast.ImportFrom):
        owner = program.modules.get(code.absolute(node))
        if owner is None or owner.tree is None or owner is module:
            continue
        names = code_of(owner).stored.keys()
        if "__getattr__" in names or _DYNAMIC & code_of(owner).names or "*" in names:
            continue
        for alias in node.names:
            is_module = f"{owner.name}.{alias.name}" in program.modules
            is_file = any(
                exists(owner.file.parent / name) for name in (alias.name, f"{alias.name}.py")
            )
            in_package = owner.path.endswith("__init__.py") and (is_module or is_file)
            if alias.name != "*" and alias.name not in names and not in_package:
                known = alias.name.startswith("__") and alias.name.endswith("__")
                built = owner.path.endswith("__init__.py") and _is_built(owner, alias.name)
                if not known and not built:
                    yield node, alias.name, owner.name, frozenset(names)


RULE = Rule(
    category="attribute_not_found",
    why="Python looks up an attribute only when the line runs. A renamed layer or an unwritten "
    "function terminates the job at that line.",
    fix="Correct the name, or define the attribute.",
    source="Zhang et al., ICSE 2020, Table 1, Attribute Not Found",
    check=_check,
    examples="""
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc1 = nn.Linear(2, 2)

            def forward(self, x):
                return self.fc2(x)  # <-


        print(Net()(torch.rand(1, 2)))
        ---- caught if
        -        return self.fc2(x)  # <-
        +        return self.fc1(self.norm(x))  # <-
        ---- ignored if
        -        return self.fc2(x)
        +        return self.fc1(x)
        ----
        options = {'a': 1}
        for k, v in options.iteritems():  # <-
            print(k, v)
        ----
        import random

        random.seed(1)  # <-
        ==> random.py <==
        x = 1
        ----
        import lib

        lib.net.build()  # <-
        ==> lib/__init__.py <==
        ==> lib/net.py <==
        def build():
            return 1
        ---- ignored if
         import lib
        +import lib.net
        ----
        from enum import Enum


        class Split(Enum):
            TRAIN = 'a'
            VAL = 'b'
            next = lambda self: self
        print(Split.TEST)  # <-
        ---- ignored if
        -print(Split.TEST)
        +print(Split.VAL.value, Split.TRAIN.name, Split.VAL.next(), list(Split))
        ----
        from collections import namedtuple

        R = namedtuple('R', 'loss accuracy')
        print(R(1, 2).acc)  # <-
        ----
        import lib

        print(lib.build)
        ==> lib.py <==
        globals()['build'] = 3
        ----
        loss = 0.5
        print(loss.item() if hasattr(loss, 'item') else loss)
        ----
        from ops import _C

        print(_C)
        ==> ops/__init__.py <==
        ==> setup.py <==
        from setuptools import Extension, setup

        setup(ext_modules=[Extension('ops._C', ['ops/align.c'])])
        ----
        import argparse

        parser = argparse.ArgumentParser()
        args = (parser.add_argument('--batch-size', type=int), parser.parse_args())[1]
        print(getattr(args, 'batchsize', 8))
        ---- ignored if
        -print(getattr(args, 'batchsize', 8))
        +print(vars(args))
        +args.world = 2
        +print(args.world)
        ----
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self, width=2):
                super().__init__()
                self.fc = nn.Linear(width, width)

            def forward(self, x):
                return self.fc(x)


        model = nn.parallel.DistributedDataParallel(Net())
        print(model.module.width)
        ---- ignored if
        -print(model.module.width)
        +print(model.width if hasattr(model, 'width') else 0)
        ---- caught if
        -print(model.module.width)
        +print(model.width)  # <-
        ----
        class Settings:
            rate = 0.1

            def __init__(self):
                self.epochs = 3

            def show(self):
                print(self.rate)


        Settings().show()
        ---- caught if
        -    def show(self):
        -        print(self.rate)
        +
        +def show(s):
        +    print(s.epoch)  # <-
        @@
        -Settings().show()
        +show(Settings())
        ---- ignored if
        +settings = None
         class Settings:
        @@
        -        print(self.rate)
        +        print(self.batch)
        @@
         Settings().show()
        +settings = Settings()
        +settings.batch = 3
        ----
        from models import build
        print(build)
        ==> models.py <==
        def build():
            return 1
        ---- caught if
        -from models import build
        -print(build)
        +from models import make  # <-
        +print(make)
        ----
        from models import make
        print(make)
        ==> models.py <==
        from os.path import *
        ---- ignored if
        -from os.path import *
        +def __getattr__(name):
        +    return name
        ----
        import argparse


        class P(argparse.ArgumentParser):
            def go(self):
                return self.prog


        print(P().go())
    """,
)
