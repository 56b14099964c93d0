"""Functions of the standard library whose results follow from their arguments."""

from __future__ import annotations

import ast
import math
import posixpath
from collections.abc import Callable
from dataclasses import replace

from epochzero import launchers
from epochzero.check.launch.containers import has_no_gpus
from epochzero.check.program import python_errors
from epochzero.check.program.core import Core
from epochzero.check.program.executed_files import global_names
from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import Box, Class, Content, JobModule, LibraryResult, Object, V
from epochzero.check.program.namespaces import namespace, set_name
from epochzero.check.program.texts import absolute_path, as_text, join_paths, path_part
from epochzero.check.program.values import Anything, Constant, External, Items, Text

_LONGEST_LITERAL = 4096
"""Limit of the length of a literal that is evaluated."""
_LONGEST_RANGE = 64
"""Limit of the numbers of a range that are listed."""

_Known = Callable[[Core, Arguments], V | None]


def result_of(machine: Core, name: str, given: Arguments) -> V | None:
    """Return the result of a function; None if it is unknown."""
    if not given.complete:
        return None
    if (function := _FUNCTIONS.get(name)) is not None:
        return function(machine, given)
    if (pure := _PURE.get(name)) is not None:
        return _computed(machine, pure, given)
    return None


_PURE: dict[str, Callable[..., object]] = {
    "builtins.int": int,
    "builtins.float": float,
    "builtins.bool": bool,
    "builtins.abs": abs,
    "builtins.round": round,
    "builtins.repr": repr,
    "builtins.chr": chr,
    "builtins.ord": ord,
    "builtins.format": format,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.sqrt": math.sqrt,
    "math.log": math.log,
    "math.log2": math.log2,
    "math.log10": math.log10,
    "math.gcd": math.gcd,
    "os.path.basename": posixpath.basename,
    "os.path.dirname": posixpath.dirname,
    "os.path.normpath": posixpath.normpath,
    "os.path.isabs": posixpath.isabs,
    "os.path.splitext": posixpath.splitext,
    "os.path.split": posixpath.split,
    "os.fspath": str,
}


def _computed(machine: Core, function: Callable[..., object], given: Arguments) -> V | None:
    arguments: list[object] = []
    for value in given.positional:
        text = as_text(value)
        if not isinstance(value, Constant) and not isinstance(text, Constant):
            return _part_of_path(function, given)
        arguments.append(text.value if isinstance(text, Constant) else value.value)  # type: ignore[union-attr]
    if given.keywords or any(
        isinstance(argument, int) and abs(argument) > 1 << 64 for argument in arguments
    ):
        return None
    try:
        result = function(*arguments)
    except (TypeError, ValueError) as error:
        return _refused(machine, function, given, error)
    except ArithmeticError:
        return None
    if isinstance(result, tuple):
        return Box.of("tuple", (Constant(item) for item in result))
    origin = next(
        (argument.origin for argument in given.positional if isinstance(argument, Constant)), None
    )
    return Constant(result, origin)  # type: ignore[arg-type]


def _refused(
    machine: Core, function: Callable[..., object], given: Arguments, error: TypeError | ValueError
) -> V | None:
    """Record that a function rejects its arguments."""
    if not given.positional or not all(
        isinstance(argument, Constant) for argument in given.positional
    ):
        return None
    if any(python_errors.is_none(argument) for argument in given.positional):
        return machine.fails("none", type(error), str(error), machine.at)
    if isinstance(error, TypeError) and function not in (int, float):
        return None  # The rule about calls reports arguments of a wrong type.
    return machine.fails("value", type(error), str(error), machine.at)


def _part_of_path(function: Callable[..., object], given: Arguments) -> V | None:
    """The directory or name of a partly known path."""
    text = as_text(given.positional[0])
    parts: dict[object, str] = {posixpath.dirname: "folder", posixpath.basename: "name"}
    what = parts.get(function)
    return path_part(text, what) if text is not None and what else None


# -- Built-in functions --------------------------------------------------------------------------


def _len(machine: Core, given: Arguments) -> V | None:
    value = given.get(0)
    if isinstance(value, Constant) and isinstance(value.value, (str, bytes)):
        return Constant(len(value.value))
    content = value.content if isinstance(value, Box) else value
    if isinstance(value, (Box, Items)) and content.complete and value.kind != "set":  # type: ignore[union-attr]
        return Constant(len(content.values))  # type: ignore[union-attr]
    if isinstance(value, Object):
        return machine.own_method(value, "__len__", Arguments())
    if isinstance(value, Constant):
        kind = "none" if python_errors.is_none(value) else "type"
        message = f"object of type '{python_errors.type_name(value)}' has no len()"
        return machine.fails(kind, TypeError, message, machine.at)
    return None


def _str(machine: Core, given: Arguments) -> V | None:
    if len(given.positional) != 1:
        return None if given.positional else Constant("")
    value = given.positional[0]
    if (text := as_text(value)) is not None:
        return text
    if isinstance(value, Constant):
        return Constant(str(value.value), value.origin)
    return None


def _range(machine: Core, given: Arguments) -> V | None:
    numbers = [argument.value for argument in given.positional if isinstance(argument, Constant)]
    if len(numbers) != len(given.positional) or not all(isinstance(n, int) for n in numbers):
        return None
    try:
        numbered = range(*numbers)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    shown = numbered[:_LONGEST_RANGE]
    box = Box.of("tuple", (Constant(n) for n in shown), complete=len(shown) == len(numbered))
    box.numbers = numbered
    return box


def _container(kind: str) -> _Known:
    def make(machine: Core, given: Arguments) -> V | None:
        if not given.positional:
            return Box.of(kind, ())
        items, complete, _ = machine.iterated_known(given.positional[0])
        return None if items is None else Box.of(kind, items, complete=complete)

    return make


def _dict(machine: Core, given: Arguments) -> V | None:
    keys: list[V] = []
    values: list[V] = []
    complete = True
    for argument in given.positional:
        if not isinstance(argument, Box) or argument.kind != "dict":
            return Box.of("dict", (), complete=False)
        keys, values = list(argument.content.keys), list(argument.content.values)
        complete = argument.content.complete
    box = Box.of("dict", values, keys, complete)
    from epochzero.check.program.methods import store_item

    for name, value in given.keywords.items():
        store_item(machine.journal, box, Constant(name), value)
    return box


def _enumerate(machine: Core, given: Arguments) -> V | None:
    items, complete, _ = machine.iterated_known(given.get(0))
    start = given.keywords.get("start", (*given.positional[1:], Constant(0))[0])
    if items is None or not isinstance(start, Constant) or not isinstance(start.value, int):
        return None
    pairs = (Box.of("tuple", (Constant(at), item)) for at, item in enumerate(items, start.value))
    return Box.of("list", pairs, complete=complete)


def _zip(machine: Core, given: Arguments) -> V | None:
    columns = [machine.iterated_known(argument) for argument in given.positional]
    lists = [items for items, _, _ in columns if items is not None]
    if len(lists) != len(columns) or not all(complete for _, complete, _ in columns):
        return None
    return Box.of("list", (Box.of("tuple", row) for row in zip(*lists, strict=False)))


def _sorted(machine: Core, given: Arguments) -> V | None:
    items, complete, _ = machine.iterated_known(given.get(0))
    constants = [item.value for item in items or () if isinstance(item, Constant)]
    if items is None or not complete or len(constants) != len(items) or given.keywords:
        return None
    try:
        return Box.of("list", (Constant(constant) for constant in sorted(constants)))  # type: ignore[type-var]
    except TypeError:
        return None


def _extreme(function: Callable[..., object]) -> _Known:
    def find(machine: Core, given: Arguments) -> V | None:
        items: list[V] | None = given.positional
        complete = True
        if len(given.positional) == 1:
            items, complete, _ = machine.iterated_known(given.positional[0])
        constants = [item.value for item in items or () if isinstance(item, Constant)]
        if not items or not complete or len(constants) != len(items) or given.keywords:
            return None
        try:
            return Constant(function(constants))  # type: ignore[arg-type]
        except TypeError:
            return None

    return find


def _isinstance(machine: Core, given: Arguments) -> V | None:
    if len(given.positional) != 2:
        return None
    value, kind = given.positional
    kinds = list(kind.content.values) if isinstance(kind, Box) else [kind]
    known = [_is_a(value, kind) for kind in kinds]
    if True in known:
        return Constant(True)
    return None if None in known else Constant(False)


def _is_a(value: V, kind: V) -> bool | None:
    if isinstance(value, Object) and isinstance(kind, Class):
        if kind in value.cls.line():
            return True
        return None if "?" in value.cls.externals() else False
    if isinstance(kind, Class) and not kind.externals() and not kind.opaque:
        return False if isinstance(value, (Box, Constant, Text)) else None
    if isinstance(kind, External) and kind.name.startswith("builtins."):
        name = kind.name.removeprefix("builtins.")
        if isinstance(value, Text):
            return name == "str"
        if isinstance(value, (Box, Items)):
            return value.kind == name
        if isinstance(value, Constant):
            named = {"str": str, "int": int, "float": float, "bool": bool, "bytes": bytes}
            plain = named.get(name)
            return isinstance(value.value, plain) if plain else name == "object"
    return None


def _getattr(machine: Core, given: Arguments) -> V | None:
    if len(given.positional) < 2 or not isinstance(given.positional[1], Constant):
        return None
    owner, name = given.positional[0], str(given.positional[1].value)
    if isinstance(owner, External):
        return External(f"{owner.name}.{name}") if len(given.positional) == 2 else None
    found = machine.has(owner, name)
    is_asked = len(given.positional) == 2 and isinstance(owner, (JobModule, Class))
    if found or is_asked:
        return machine.attribute(owner, name, machine.at)
    if found is False and len(given.positional) > 2:
        return given.positional[2]
    return None


def _hasattr(machine: Core, given: Arguments) -> V | None:
    if len(given.positional) != 2 or not isinstance(given.positional[1], Constant):
        return None
    found = machine.has(given.positional[0], str(given.positional[1].value))
    return None if found is None else Constant(found)


def _setattr(machine: Core, given: Arguments) -> V | None:
    if len(given.positional) == 3 and isinstance(
        owner := given.positional[0], (Object, LibraryResult, Class, JobModule)
    ):
        set_name(machine.journal, owner, given.positional[1], given.positional[2])
    return Constant(None)


def _vars(machine: Core, given: Arguments) -> V | None:
    if given.positional and isinstance(owner := given.positional[0], (Object, LibraryResult)):
        complete = owner.closed if isinstance(owner, LibraryResult) else not owner.cls.opaque
        return namespace(owner, complete)
    return None if given.positional or machine.frame.function else global_names(machine)


def _globals(machine: Core, given: Arguments) -> V | None:
    return global_names(machine)


def _literal_eval(machine: Core, given: Arguments) -> V | None:
    text = as_text(given.positional[0]) if len(given.positional) == 1 else None
    if not isinstance(text, Constant) or len(str(text.value)) > _LONGEST_LITERAL:
        return None
    try:
        value = ast.literal_eval(str(text.value))
    except (SyntaxError, ValueError) as error:
        return machine.fails("value", type(error), str(error), machine.at)
    except (MemoryError, RecursionError, TypeError):
        return None
    return None if isinstance(value, (list, tuple, set, dict)) else Constant(value, text.origin)


def _first(machine: Core, given: Arguments) -> V | None:
    items, _, _ = machine.iterated_known(given.get(0))
    return items[0] if items else None


def _any_or_all(stops: bool) -> _Known:
    def find(machine: Core, given: Arguments) -> V | None:
        items, complete, _ = machine.iterated_known(given.get(0))
        known = [machine.truth(item) for item in items or ()]
        if stops in known:
            return Constant(stops)
        return Constant(not stops) if items is not None and complete and None not in known else None

    return find


def _print(machine: Core, given: Arguments) -> V | None:
    return Constant(None)


# -- Paths and the environment -------------------------------------------------------------------


def _join(machine: Core, given: Arguments) -> V | None:
    return join_paths(given.positional) if given.positional else None


def _path(machine: Core, given: Arguments) -> V | None:
    if not given.positional:
        return LibraryResult("pathlib.Path", (Constant("."),))
    return LibraryResult("pathlib.Path", (join_paths(given.positional),))


def _cwd(machine: Core, given: Arguments) -> V | None:
    return Constant(machine.job.folder.as_posix())


def _cwd_path(machine: Core, given: Arguments) -> V | None:
    return LibraryResult("pathlib.Path", (Constant(machine.job.folder.as_posix()),))


def _absolute(machine: Core, given: Arguments) -> V | None:
    text = as_text(given.get(0))
    return None if text is None else absolute_path(text, machine.job.folder.as_posix())


def _relative(machine: Core, given: Arguments) -> V | None:
    texts = [as_text(argument) for argument in given.positional]
    known = [str(text.value) for text in texts if isinstance(text, Constant)]
    if len(known) != len(texts) or not known:
        return None
    whole = [posixpath.join(machine.job.folder.as_posix(), text) for text in known]
    return Constant(posixpath.relpath(whole[0], *(whole[1:] or [machine.job.folder.as_posix()])))


def _home(machine: Core) -> str:
    user = machine.target.user
    known, _ = machine.variable("HOME")
    if isinstance(known, Constant):
        return str(known.value)
    return user.home if user is not None else ""


def _expanduser(machine: Core, given: Arguments) -> V | None:
    text = as_text(given.get(0))
    home = _home(machine)
    if isinstance(text, Constant):
        written = str(text.value)
        if not written.startswith("~"):
            return text
        if written == "~" or written.startswith("~/"):
            return Constant(home + written[1:], text.origin) if home else None
        return None
    if text is not None and isinstance(text.parts[0], str) and not text.parts[0].startswith("~"):
        return text
    return None


def _home_path(machine: Core, given: Arguments) -> V | None:
    home = _home(machine)
    return LibraryResult("pathlib.Path", (Constant(home),)) if home else None


def _expandvars(machine: Core, given: Arguments) -> V | None:
    text = as_text(given.get(0))
    return text if isinstance(text, Constant) and "$" not in str(text.value) else None


def _getenv(machine: Core, given: Arguments) -> V | None:
    key = given.get(0, "key")
    if not isinstance(key, Constant):
        return None
    value, found = machine.variable(str(key.value))
    if found:
        return value
    default = given.get(1, "default") or Constant(None)
    return default if found is False else Anything(f"the variable {key.value!r}, which may be set")


def _setenv(machine: Core, given: Arguments) -> V | None:
    if len(given.positional) == 2 and isinstance(key := given.positional[0], Constant):
        value, found = machine.variable(str(key.value))
        if not found:
            value = given.positional[1]
            machine.journal.set(machine.environment, str(key.value), value)
        return value
    return None


def _world_size(machine: Core, given: Arguments) -> V | None:
    """The size of the default process group, as the launcher sets it."""
    message = machine.job.environment.get("WORLD_SIZE") or ""
    return (
        None
        if given.positional or given.keywords or not message.isdigit()
        else Constant(int(message))
    )


def _namedtuple(machine: Core, given: Arguments) -> V | None:
    """``collections.namedtuple``: the class that `typing.NamedTuple` would create."""
    if len(given.positional) != 2 or given.keywords:
        return None
    name, fields = given.positional
    items, complete, _ = machine.iterated_known(fields)
    if isinstance(fields, Constant) and isinstance(fields.value, str):
        words = str(fields.value).replace(",", " ").split()
        items, complete = [Constant(word) for word in words], True
    names = [item.value for item in items or () if isinstance(item, Constant)]
    if items is None or not complete or len(names) != len(items) or not isinstance(name, Constant):
        return None
    body: list[ast.stmt] = [
        ast.AnnAssign(ast.Name(str(name), ast.Store()), ast.Constant(None), None, 1)
        for name in names
    ]
    node = ast.ClassDef(str(name.value), bases=[], keywords=[], body=body, decorator_list=[])
    bases = (External("typing.NamedTuple"),)
    return Class(f"{machine.module.name}.{node.name}", node, machine.module, bases, {}, True)


def _namespace(machine: Core, given: Arguments) -> V | None:
    return LibraryResult("types.SimpleNamespace", (), {}, None, dict(given.keywords))


def _copy(machine: Core, given: Arguments) -> V | None:
    value = given.get(0)
    if isinstance(value, Box):
        return Box.of(value.kind, value.content.values, value.content.keys, value.content.complete)
    return value


def _shallow_copy(machine: Core, given: Arguments) -> V | None:
    value = _copy(machine, given)
    if isinstance(value, (Object, LibraryResult)):
        return replace(value, attributes=dict(value.attributes))
    return value


def _deep_copy(machine: Core, given: Arguments) -> V | None:
    return _deeply_copied(given.positional[0], {}) if given.positional else None


def _deeply_copied(value: V, copies: dict[int, V]) -> V:
    """Copy containers and objects of the job; what they share or contain of themselves is copied once."""
    if (known := copies.get(id(value))) is not None:
        return known
    if isinstance(value, Box):
        box = copies[id(value)] = Box(value.kind, {"content": Content()})
        items = tuple(_deeply_copied(item, copies) for item in value.content.values)
        box.state["content"] = replace(value.content, values=items)
        return box
    if isinstance(value, (Object, LibraryResult)):
        copied = copies[id(value)] = replace(value, attributes={})
        for name, attribute in value.attributes.items():
            copied.attributes[name] = _deeply_copied(attribute, copies)
        return copied
    return value


def _has_cuda(machine: Core, _given: Arguments) -> V | None:
    """True if the target has GPUs and nothing may hide them from the job; else unknown."""
    job, target = machine.job, machine.target
    _, chosen = machine.variable("CUDA_VISIBLE_DEVICES")
    batch = any(launcher.set_on_nodes for name in job.launchers if (launcher := launchers.of(name)))
    asked = bool(job.allocation.gpus or job.allocation.gpus_per_node) or not batch
    hidden = has_no_gpus(job) or chosen or target.cuda_of_torch == ""
    return Constant(True) if target.gpus and asked and not hidden else None


_FUNCTIONS: dict[str, _Known] = {
    "builtins.len": _len,
    "builtins.str": _str,
    "builtins.range": _range,
    "tqdm.trange": _range,
    "tqdm.auto.trange": _range,
    "builtins.list": _container("list"),
    "builtins.tuple": _container("tuple"),
    "builtins.set": _container("set"),
    "builtins.frozenset": _container("set"),
    "builtins.dict": _dict,
    "collections.OrderedDict": _dict,
    "collections.namedtuple": _namedtuple,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.sorted": _sorted,
    "builtins.min": _extreme(min),
    "builtins.max": _extreme(max),
    "builtins.sum": _extreme(sum),
    "builtins.isinstance": _isinstance,
    "builtins.getattr": _getattr,
    "builtins.hasattr": _hasattr,
    "builtins.setattr": _setattr,
    "builtins.vars": _vars,
    "builtins.globals": _globals,
    "builtins.iter": _copy,
    "builtins.next": _first,
    "ast.literal_eval": _literal_eval,
    "builtins.any": _any_or_all(True),
    "builtins.all": _any_or_all(False),
    "builtins.print": _print,
    "copy.copy": _shallow_copy,
    "copy.deepcopy": _deep_copy,
    "os.path.join": _join,
    "os.path.abspath": _absolute,
    "os.path.realpath": _absolute,
    "os.path.relpath": _relative,
    "os.path.expanduser": _expanduser,
    "os.path.expandvars": _expandvars,
    "os.getcwd": _cwd,
    "os.getenv": _getenv,
    "os.environ.get": _getenv,
    "os.environ.setdefault": _setenv,
    "pathlib.Path": _path,
    "pathlib.PurePath": _path,
    "pathlib.PosixPath": _path,
    "pathlib.PurePosixPath": _path,
    "pathlib.Path.cwd": _cwd_path,
    "pathlib.Path.home": _home_path,
    "torch.cuda.is_available": _has_cuda,
    "torch.distributed.get_world_size": _world_size,
    "types.SimpleNamespace": _namespace,
    "argparse.Namespace": _namespace,
}
