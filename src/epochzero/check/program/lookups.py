"""Lookups: attributes, items and environment variables."""

from __future__ import annotations

import ast
import enum
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from epochzero.check.program import methods, python_errors
from epochzero.check.program.core import Core
from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import (
    BoundFunction,
    Box,
    Class,
    Function,
    JobModule,
    LibraryResult,
    Member,
    Object,
    Super,
    V,
    held,
    in_classes,
    is_enumeration,
    is_torch_module,
    published,
)
from epochzero.check.program.namespaces import namespace
from epochzero.check.program.tensors import results
from epochzero.check.program.tensors.values import Tensor
from epochzero.check.program.texts import as_text
from epochzero.check.program.values import (
    Anything,
    Constant,
    External,
    Items,
    Raises,
    Text,
    Variable,
)

_KNOWN_NAMES: dict[str, Constant] = {
    "os.sep": Constant("/"),
    "os.path.sep": Constant("/"),
    "os.pathsep": Constant(":"),
    "os.linesep": Constant("\n"),
    "os.name": Constant("posix"),
    "sys.platform": Constant("linux"),
    "typing.TYPE_CHECKING": Constant(False),
    "typing_extensions.TYPE_CHECKING": Constant(False),
}
MODULE_MEMBERS = frozenset(
    """
    T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda
    double dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter
    get_submodule half ipu load_state_dict modules mtia named_buffers named_children
    named_modules named_parameters parameters register_backward_hook register_buffer
    register_forward_hook register_forward_pre_hook register_full_backward_hook
    register_full_backward_pre_hook register_load_state_dict_post_hook
    register_load_state_dict_pre_hook register_module register_parameter
    register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state
    set_submodule share_memory state_dict to to_empty train training type xpu zero_grad
    """.split()
)
"""Public attributes of `torch.nn.Module` up to 2.13, which no installation is needed to know."""
_NAMED_TUPLE = namedtuple("_NAMED_TUPLE", ())
_PARTS_OF_PATHS = {"parent": "folder", "name": "name", "stem": "stem", "suffix": "suffix"}


class Lookups(Core):
    """Look up attributes and items."""

    # -- Attributes ---------------------------------------------------------------------------

    def external_attribute(self, owner: External, name: str) -> V:
        """Look up a name of a library; for some names of the standard library its value."""
        dotted = f"{owner.name}.{name}"
        if dotted == "sys.argv":
            return self.arguments
        if dotted == "sys.version_info" and self.target.python is not None:
            return Box.of("tuple", (Constant(number) for number in self.target.python))
        if owner.name == "absl.flags.FLAGS":
            return self.flag(name) or Anything(f"the flag {name}")
        return _KNOWN_NAMES.get(dotted) or External(dotted)

    def attribute(self, owner: V, name: str, node: ast.AST, called: bool = False) -> V:
        """Look up an attribute of a value.

        Args:
            owner: the value.
            name: of the attribute.
            node: the expression.
            called: whether it is called next, which is an event of its own.
        """
        if not called and (known := results.attribute_of(owner, name)) is not None:
            return known
        match owner:
            case External():
                self.looked(owner, name, node, item=False, found=None)
                return self.external_attribute(owner, name)
            case JobModule():
                return self._of_module(owner, name, node)
            case Object():
                return self._of_object(owner, name, node, called)
            case Class():
                return self._of_class(owner, name, node)
            case Super():
                return self._of_super(owner, name)
            case LibraryResult():
                return self._of_made(owner, name, node, called)
            case Member():
                return Member(owner, name)
            case Function(node=ast.FunctionDef(name=written, decorator_list=[])) if (
                name == "__name__"
            ):
                return Constant(written)
            case Function() if name == "remote":
                return owner  # a Ray task; it is called with the function's own arguments
            case Constant() | Text() | Box() if python_errors.has_attribute(owner, name) is False:
                kind = "none" if python_errors.is_none(owner) else "attribute"
                error_text = f"'{python_errors.type_name(owner)}' object has no attribute '{name}'"
                return self.fails(kind, AttributeError, error_text, node)
            case Constant() | Text() | Box() | Items() if called:
                return BoundFunction(owner, name)
            case Anything() if called:
                return Member(owner, name)
        return Anything(f"attribute {name} of what is not known")

    def _of_module(self, owner: JobModule, name: str, node: ast.AST) -> V:
        if name in owner.names:
            return owner.names[name]
        if name.startswith("__") or "__getattr__" in owner.names:
            return Anything(f"{owner.name}.{name}")
        self.looked(published(owner), name, node, item=False, found=None)
        if owner.is_closed and self._is_surely_missing(owner, name):
            state = "partially initialized module" if owner.name in self.importing else "module"
            error_text = f"{state} '{owner.name}' has no attribute '{name}'"
            return self.fails("attribute", AttributeError, error_text, node)
        return Anything(f"{owner.name} has no {name} that is known")

    def _is_surely_missing(self, owner: JobModule, name: str) -> bool:
        """Whether a name is neither a module of the package nor imported anywhere.

        Compiled modules may be missing from the source tree.
        """
        assert owner.module is not None
        is_package = owner.module.file.name == "__init__.py"
        return not is_package or self.modules.find(f"{owner.name}.{name}") is not None

    def _of_object(self, owner: Object, name: str, node: ast.AST, called: bool) -> V:
        if name in owner.attributes:
            return owner.attributes[name]
        if name == "__class__":
            return owner.cls
        if name == "__dict__":
            return namespace(owner, complete=not owner.cls.opaque)
        if (found := in_classes(owner.cls.line(), name)) is not None:
            return self._bound(found, owner, owner.cls, node)
        if owner.cls.externals() == ("typing.NamedTuple",) and not hasattr(_NAMED_TUPLE, name):
            error_text = f"'{python_errors.type_name(owner)}' object has no attribute '{name}'"
            return self.fails("attribute", AttributeError, error_text, node)
        if owner.cls.externals():
            if is_torch_module(owner.cls) and name not in MODULE_MEMBERS:
                self._missed(owner, name, node)
            member = Member(owner, name)
            return member if called else Anything(f"{name} of {owner.cls.name}")
        self._missed(owner, name, node)
        return Anything(f"{name} of {owner.cls.name}")

    def _missed(self, owner: Object, name: str, node: ast.AST) -> None:
        """Record that an object lacks an attribute, unless its class may provide any name."""
        if not name.startswith("__") and not self._answers_any(owner.cls):
            self.looked(owner, name, node, item=False, found=False)

    def _answers_any(self, cls: Class) -> bool:
        """Whether objects of a class may have unknown attributes."""
        names = ("__getattr__", "__getattribute__", "__slots__")
        return any(parent.opaque for parent in cls.line()) or any(
            in_classes(cls.line(), name) is not None for name in names
        )

    def _bound(self, found: V, receiver: V, cls: Class, node: ast.AST) -> V:
        if not isinstance(found, Function):
            return found
        if found.kind == "property":
            where = node if isinstance(node, ast.expr) else ast.Constant(None)
            return self.apply(BoundFunction(receiver, found), Arguments(), where)
        if found.kind == "staticmethod":
            return found
        return BoundFunction(cls if found.kind == "classmethod" else receiver, found)

    def _of_class(self, owner: Class, name: str, node: ast.AST) -> V:
        found = in_classes(owner.line(), name)
        if is_enumeration(owner):
            return self._of_enumeration(owner, name, found, node)
        if found is None:
            if name == "__name__":
                return Constant(owner.name.rpartition(".")[2])
            bases = owner.externals()
            if bases and bases[0] != "?":
                return External(f"{bases[0]}.{name}")
            return Anything(f"{owner.name}.{name}")
        if isinstance(found, Function) and found.kind == "classmethod":
            return BoundFunction(owner, found)
        return found

    def _of_enumeration(self, owner: Class, name: str, found: V | None, node: ast.AST) -> V:
        """Return a member of an enumeration: an object with a name and a value."""
        if isinstance(found, Function):
            return BoundFunction(owner, found) if found.kind == "classmethod" else found
        if found is not None and not name.startswith("_"):
            if name not in owner.members:
                attributes = {"name": Constant(name), "value": found}
                owner.members[name] = Object(owner, (), {}, self.place(node), attributes)
            return owner.members[name]
        if found is None and not owner.opaque and not hasattr(enum.Enum, name):
            error_text = f"type object '{owner.name.rpartition('.')[2]}' has no attribute '{name}'"
            return self.fails("attribute", AttributeError, error_text, node)
        return Anything(f"{owner.name}.{name}")

    def _of_super(self, owner: Super, name: str) -> V:
        receiver = owner.receiver
        cls = receiver.cls if isinstance(receiver, Object) else receiver
        line = cls.line() if isinstance(cls, Class) else [owner.owner]
        after = line[line.index(owner.owner) + 1 :] if owner.owner in line else []
        if (found := in_classes(after, name)) is not None:
            return self._bound(found, receiver, owner.owner, ast.Constant(None))
        return Member(receiver, name)

    def _of_made(self, owner: LibraryResult, name: str, node: ast.AST, called: bool) -> V:
        if name in owner.attributes:
            return self._read(owner.attributes[name], node)
        if name == "__dict__":
            return namespace(owner, complete=owner.closed)
        text = as_text(owner)
        if text is not None and (name in _PARTS_OF_PATHS or name == "parents"):
            return methods.path_attribute(text, name)
        if not called:
            there = False if owner.closed and not name.startswith("_") else None
            self.looked(owner, name, node, item=False, found=there)
        return Member(owner, name)

    # -- Items and variables ------------------------------------------------------------------

    def item(self, owner: V, key: V, node: ast.AST) -> V:
        """Evaluate ``owner[key]``."""
        if isinstance(owner, Object):
            getter = in_classes(owner.cls.line(), "__getitem__")
            if isinstance(getter, Function) and isinstance(node, ast.expr):
                return self.apply(BoundFunction(owner, getter), Arguments([key]), node)
            return Anything(f"an item of {owner.cls.name}")
        if owner == External("os.environ"):
            return self._variable(key, node)
        if isinstance(owner, (Box, Items)):
            return self._item_of_container(owner, key, node)
        if (modules := results.modules_of(owner)) is not None:
            return self._item_of_container(modules, key, node)
        if isinstance(held(owner), Tensor):
            return Anything("a part of a tensor")
        if error_text := python_errors.subscripted(owner):
            kind = "none" if python_errors.is_none(owner) else "type"
            return self.fails(kind, TypeError, error_text, node)
        if isinstance(owner, Constant) and (part := _slice_of(key)) is not None:
            return Constant(owner.value[part], owner.origin)  # type: ignore[index]
        if isinstance(owner, Constant) and isinstance(key, Constant):
            try:
                return Constant(owner.value[key.value])  # type: ignore[index]
            except IndexError as error:
                return self.fails("index", IndexError, str(error), node)
            except TypeError as error:
                return self.fails("type", TypeError, str(error), node)
        if isinstance(owner, LibraryResult) and isinstance(key, Constant) and owner.attributes:
            found = key.value in owner.attributes
            there = True if found else False if owner.closed else None
            self.looked(owner, str(key.value), node, item=True, found=there)
            if isinstance(key.value, str) and found:
                return self._read(owner.attributes[key.value], node)
        elif isinstance(owner, LibraryResult) and isinstance(key, Constant):
            self.looked(owner, str(key.value), node, item=True, found=None)
        if isinstance(owner, (LibraryResult, Member)):
            return Member(owner, f"[{_key_text(key)}]")
        if isinstance(owner, (External, Class)):
            return owner  # a generic type: ``Dataset[int]``
        return Anything("an item of what is not known")

    def _read(self, value: V, node: ast.AST) -> V:
        """Read a value of a configuration, which may raise."""
        match value:
            case Raises(error=error, message=message):
                return self.fails("configuration", error, message, node)
            case Variable(name=name, whole=whole):
                found = self._variable(Constant(name), node)
                return found if whole else Anything(f"a text with the variable {name}")
        return value

    def _variable(self, key: V, node: ast.AST) -> V:
        """Read an environment variable, which raises if it is not set."""
        if not isinstance(key, Constant) or not isinstance(key.value, str):
            return Anything("a variable of the environment")
        value, found = self.variable(key.value)
        self.looked(External("os.environ"), key.value, node, item=True, found=found)
        return value

    def variable(self, name: str) -> tuple[V, bool | None]:
        """Return an environment variable, and whether it is set (None: unknown)."""
        if name in self.environment:
            return self.environment[name], True
        if name in self.job.environment:
            given = self.job.environment[name]
            return (Anything(f"the variable {name}") if given is None else Constant(given)), True
        known = self.target.environment
        if known is not None and name in known:
            return Constant(known[name]), True
        return Anything(f"the variable {name}"), None if known is None else False

    def _item_of_container(self, owner: Box | Items, key: V, node: ast.AST) -> V:
        content = owner.content if isinstance(owner, Box) else owner
        if owner.kind == "dict":
            found, value = _in_dictionary(content.keys, content.values, key, content.complete)
            if isinstance(key, Constant) and isinstance(key.value, str):
                self.looked(owner, key.value, node, item=True, found=found)
            return value
        if isinstance(key, Constant) and isinstance(key.value, int):
            values, at = content.values, int(key.value)
            if 0 <= at < len(values) or (content.complete and -len(values) <= at < 0):
                return values[at]
            if content.complete and (owner.kind == "tuple" or not self.rounds):
                error_text = f"{owner.kind} index out of range"
                return self.fails("index", IndexError, error_text, node)
        if content.complete and (part := _slice_of(key)) is not None:
            return Box.of(owner.kind, content.values[part])
        return Anything("an item that is not known")


def _slice_of(key: V) -> slice | None:
    """Return the slice of a key with known bounds; None for any other key and for a step of 0."""
    if not isinstance(key, LibraryResult) or key.name != "builtins.slice":
        return None
    bounds: list[Any] = [part.value for part in key.arguments if isinstance(part, Constant)]
    if len(bounds) != 3 or not all(b is None or isinstance(b, int) for b in bounds):
        return None
    return None if bounds[2] == 0 else slice(*bounds)


def _key_text(key: V) -> str:
    return repr(key.value)[:40] if isinstance(key, Constant) else ""


def _in_dictionary(
    keys: Sequence[V], values: Sequence[V], key: V, complete: bool
) -> tuple[bool | None, V]:
    if not isinstance(key, Constant):
        return None, Anything("an item whose key is not known")
    for known, value in zip(keys, values, strict=True):
        if isinstance(known, Constant) and known.value == key.value:
            return True, value
    sure = complete and all(isinstance(known, Constant) for known in keys)
    return False if sure else None, Anything(f"an item with the key {_key_text(key)}")
