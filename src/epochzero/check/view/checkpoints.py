"""The content of the checkpoints that a job loads: by their files, else by the job's own saves."""

from __future__ import annotations

import pickletools
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from epochzero.check.paths.analysis import analyze_paths
from epochzero.check.paths.text import PathText, path_text
from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant, Instance, Items, Value
from epochzero.check.target.model import Target
from epochzero.file_access import open_file

LARGEST_PICKLE_BYTES = 8 << 20
_TENSORS = ("torch", "collections", "_codecs", "builtins", "copyreg")
"""Modules whose classes for tensors and dictionaries ``weights_only`` accepts."""
_OBJECTS = ("torch.nn.", "torch.optim.", "torch.utils.data.")
_STRINGS = ("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE")
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")
_GETS = ("GET", "BINGET", "LONG_BINGET")


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of a checkpoint.

    Attributes:
        keys: keys of its dictionary; None if it is not a dictionary, or not all of them are known.
        globals: dotted names of the classes and functions that unpickling needs.
        evidence: how this is known, as text for users.
    """

    keys: tuple[str, ...] | None
    globals: tuple[str, ...]
    evidence: str


@dataclass(frozen=True, slots=True)
class CheckpointLoad:
    """A call of ``torch.load``, with the content of the file.

    Attributes:
        call: the call.
        held: one item for each save of the job that may have written the file.
        sure: whether it certainly is one of these: they were written to this path before.
    """

    call: LibraryCall
    held: tuple[Contents, ...]
    sure: bool = True


def loads_of(program: Program, target: Target) -> Iterator[CheckpointLoad]:
    """Yield the calls of ``torch.load`` that load known content."""
    opened = [file for file in analyze_paths(program, target).opened if file.sure]
    files = {id(opened_file.access.call): opened_file.local for opened_file in opened}
    folder = program.job.folder
    before = takewhile(lambda earlier: earlier.job.folder == folder, program.earlier)
    saved = [save for earlier in before for save in _saves(earlier)]
    for call in program.calls:
        if call.name == "torch.save":
            saved.append(_saved(call))
        elif call.name == "torch.load":
            file = files.get(id(call))
            held = None if file is None else read_checkpoint(file)
            if file is None:
                yield from _of_saves(call, saved, list(_saves(program)))
            elif held is not None:
                yield CheckpointLoad(call, (held,))


def _of_saves(
    call: LibraryCall, before: Sequence[_Save], own: Sequence[_Save]
) -> Iterator[CheckpointLoad]:
    """The content that was saved before a call, or in an earlier run of the same program."""
    path = path_text(argument(call, 0, "f"))
    known = path.known if path is not None else None
    if known is not None:
        same = tuple(save.held for save in before if save.path and save.path.known == known)
        if same:
            yield CheckpointLoad(call, same)
            return
    alike = {
        save.held: None
        for save in (*before, *own)
        if known is None or save.path is None or save.path.pattern.fullmatch(known)
    }
    if alike:
        yield CheckpointLoad(call, tuple(alike), sure=False)


@dataclass(frozen=True, slots=True)
class _Save:
    path: PathText | None
    held: Contents


def _saves(program: Program) -> Iterator[_Save]:
    for call in program.calls:
        if call.name == "torch.save":
            yield _saved(call)


def _saved(call: LibraryCall) -> _Save:
    value = argument(call, 0, "obj")
    keys: tuple[str, ...] | None = None
    if isinstance(value, Items) and value.kind == "dict" and value.complete:
        names = [key.value for key in value.keys if isinstance(key, Constant)]
        if len(names) == len(value.keys):
            keys = tuple(str(name) for name in names)
    place = call.at.place
    held = Contents(keys, tuple(_classes(value)), f"it is saved at {place.path}:{place.line}")
    return _Save(path_text(argument(call, 1, "f")), held)


def _classes(value: Value | None) -> Iterator[str]:
    """The classes of the objects in a saved value, as far as they are certain."""
    if isinstance(value, Items):
        for item in value.values:
            yield from _classes(item)
    elif isinstance(value, Instance):
        name = value.made_by
        makes_object = name.rpartition(".")[2][:1].isupper() or name.startswith("numpy.")
        if "()" not in name and makes_object:
            yield name


def refused_globals(held: Contents) -> tuple[str, ...]:
    """The names that ``torch.load`` with ``weights_only=True`` rejects.

    Source: documentation of torch.serialization, weights_only; the list in torch/_weights_only_unpickler.py.
    """
    return tuple(
        name
        for name in held.globals
        if name.partition(".")[0] not in _TENSORS
        or (name.startswith(_OBJECTS) and not name.endswith(("Parameter", "Buffer")))
    )


# -- The file ------------------------------------------------------------------------------------


def read_checkpoint(file: str) -> Contents | None:
    """The content of a file of ``torch.save``; None if it is another file, or too large.

    Its pickle is read by opcodes, and none of them is executed.
    """
    try:
        with open_file(file) as stream, zipfile.ZipFile(stream) as archive:
            names = [
                member for member in archive.infolist() if member.filename.endswith("/data.pkl")
            ]
            if len(names) != 1 or names[0].file_size > LARGEST_PICKLE_BYTES:
                return None
            top, found = _Opcodes().read(archive.read(names[0]))
    except (
        OSError,
        EOFError,
        ValueError,
        LookupError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
    ):
        return None
    keys = tuple(top.keys) if isinstance(top, _Dict) else None
    return Contents(keys, tuple(sorted(found)), "as the file shows")


class _Dict:
    """A dictionary in a pickle."""

    def __init__(self) -> None:
        self.keys: list[str] = []


_MARK = object()
_OTHER = object()


class _Opcodes:
    """The stack of a pickle, limited to dictionaries and texts; all other values are one placeholder."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}
        self.globals: set[str] = set()

    def read(self, data: bytes) -> tuple[object, set[str]]:
        """The pickled content, and the names that it needs."""
        for code, operand, _ in pickletools.genops(data):
            if code.name == "STOP":
                return self.stack[-1], self.globals
            self._step(code, operand)
        raise ValueError("the pickle is incomplete")

    def _step(self, code: pickletools.OpcodeInfo, operand: object) -> None:
        stack = self.stack
        match code.name:
            case "MARK":
                stack.append(_MARK)
            case "EMPTY_DICT":
                stack.append(_Dict())
            case "SETITEM" | "SETITEMS":
                items = (
                    self._slice() if code.name == "SETITEMS" else [stack.pop(), stack.pop()][::-1]
                )
                if isinstance(stack[-1], _Dict):
                    stack[-1].keys += [str(key) for key in items[::2]]
            case "MEMOIZE":
                self.memo[len(self.memo)] = stack[-1]
            case "GLOBAL":
                self._global(*str(operand).split(" ", 1))
            case "STACK_GLOBAL":
                name, module = stack.pop(), stack.pop()
                self._global(str(module), str(name))
            case "REDUCE":
                stack.pop()
                made = stack.pop()
                stack.append(_Dict() if made == "collections.OrderedDict" else _OTHER)
            case "BUILD":
                stack.pop()
            case name if name in _STRINGS:
                stack.append(operand)
            case name if name in _PUTS:
                self.memo[int(str(operand))] = stack[-1]
            case name if name in _GETS:
                stack.append(self.memo[int(str(operand))])
            case _:
                self._plain(code)

    def _global(self, module: str, name: str) -> None:
        self.globals.add(f"{module}.{name}")
        self.stack.append(f"{module}.{name}")

    def _slice(self) -> list[object]:
        at = max(index for index, value in enumerate(self.stack) if value is _MARK)
        items = self.stack[at + 1 :]
        del self.stack[at:]
        return items

    def _plain(self, code: pickletools.OpcodeInfo) -> None:
        if pickletools.markobject in code.stack_before:
            self._slice()
            before = code.stack_before[: code.stack_before.index(pickletools.markobject)]
        else:
            before = code.stack_before
        for _ in before:
            self.stack.pop()
        self.stack += [_OTHER] * len(code.stack_after)
