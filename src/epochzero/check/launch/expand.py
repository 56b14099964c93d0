"""Expansion of the shell's words: quotes, variables and the substitutions that only change a text.

Source: POSIX, Shell Command Language, section 2.6, and bash's arrays.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochzero import launchers
from epochzero.check.findings import SourceLocation
from epochzero.check.launch.model import Word
from epochzero.check.launch.setting import Setting, Value

if TYPE_CHECKING:
    from tree_sitter import Node


MOST_BRACES = 100
_EXPANSIONS = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"}
)
_BLANKS = re.compile(r"[ \t\n]+")
_ESCAPE = re.compile(r"\\(\n|.)", re.DOTALL)
_QUOTED_ESCAPE = re.compile(r'\\([$`"\\\n])')
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
_BY_SHELL = re.compile(
    r"(CONDA|MAMBA|COMP)_\w+|BASH\w*|RANDOM|SECONDS|HOSTNAME|E?UID"
    r"|EPOCH\w+|LINENO|PPID|OSTYPE|HOSTTYPE|MACHTYPE|IFS|OPTIND|OPTARG|PIPESTATUS|FUNCNAME|SHLVL"
    r"|GROUPS|REPLY|COLUMNS|LINES|OLDPWD|DIRSTACK|_"
)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a word: whether it is known, is split at blanks, and ends the word."""

    text: str
    known: bool = True
    split: bool = False
    ends: bool = False


def text_of(node: Node) -> str:
    """The source of a node."""
    return (node.text or b"").decode("utf-8", errors="replace")


def words_of(node: Node, setting: Setting) -> list[Word]:
    """Expand a word of the script into words."""
    place = setting.script.place(*node.start_point)
    return list(_joined(_pieces(node, setting, quoted=False), place))


def one(node: Node | None, setting: Setting, place: SourceLocation) -> Word:
    """Expand a value into one word, without splitting, like the right side of ``=``."""
    if node is None:
        return Word("", place)
    pieces = _pieces(node, setting, quoted=False)
    text = "".join(" " if piece.ends else piece.text for piece in pieces)
    if all(piece.known for piece in pieces):
        return Word(text, place)
    return Word(text, place, known=False, parts=tuple((p.text, p.known) for p in pieces))


def between(node: Node, setting: Setting, place: SourceLocation) -> Word:
    """The text of a here-document, expanded."""
    pieces = _mixed(node, node.start_byte, node.end_byte, setting)
    return next(_word(pieces, place), Word("", place))


def _joined(pieces: Sequence[_Piece], place: SourceLocation) -> Iterator[Word]:
    """Join pieces to words; known ones are split at blanks where the shell does it."""
    parts: list[_Piece] = []
    for piece in pieces:
        texts = _BLANKS.split(piece.text) if piece.split and piece.known else [piece.text]
        for position, text in enumerate(texts):
            if position:
                yield from _word(parts, place)
                parts = []
            if text or not piece.split:
                parts.append(_Piece(text, piece.known, piece.split))
        if piece.ends:
            yield from _word(parts, place)
            parts = []
    yield from _word(parts, place)


def _word(parts: Sequence[_Piece], place: SourceLocation) -> Iterator[Word]:
    """Join pieces to one word; None if there are none."""
    text = "".join(part.text for part in parts)
    if all(part.known for part in parts):
        if parts:
            yield Word(text, place)
        return
    many = any(part.split and not part.known for part in parts)
    known_parts = tuple((part.text, part.known) for part in parts)
    yield Word(text, place, known=False, many=many, parts=known_parts)


def _pieces(node: Node, setting: Setting, *, quoted: bool) -> list[_Piece]:
    """Expand a node."""
    reader = _READERS.get(node.type)
    if reader is not None:
        return reader(node, setting, quoted)
    if node.type in ("word", "number", "variable_name", "extglob_pattern", "regex"):
        return _literal(text_of(node), setting)
    return [_Piece(text_of(node), known=False, split=not quoted)]


def _literal(text: str, setting: Setting) -> list[_Piece]:
    """A word without quotes: escapes are removed, ``~`` is the home directory, ``*`` is unknown."""
    if text == "~" or text.startswith("~/"):
        home = setting.value("HOME")
        if not isinstance(home, Word) or not home.known:
            return [_Piece(text, known=False)]
        text = home.text + text[1:]
    bare = _ESCAPE.sub("", text)
    if "*" in bare or "?" in bare:
        return [_Piece(text, known=False, split=True)]
    return [_Piece(_ESCAPE.sub(lambda found: found[1].replace("\n", ""), text))]


def _concatenation(node: Node, setting: Setting, quoted: bool) -> list[_Piece]:
    parts = node.children
    if all(part.type in ("word", "number") for part in parts) and "{" in text_of(node):
        return _braces(text_of(node), setting)
    return [piece for part in parts for piece in _pieces(part, setting, quoted=quoted)]


def _braces(text: str, setting: Setting) -> list[_Piece]:
    """``a{b,c}`` is two words; nested braces are unknown."""
    found = re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", text)
    if found is None:
        return [_Piece(text, known=False, split=True)]
    before, within, after = found.groups()
    numbers = re.fullmatch(r"(-?\d{1,9})\.\.(-?\d{1,9})", within)
    if numbers:
        first, last = int(numbers[1]), int(numbers[2])
        step = 1 if last >= first else -1
        items = [str(number) for number in range(first, last + step, step)[:MOST_BRACES]]
    elif "," in within:
        items = within.split(",")
    else:
        return _literal(text, setting)
    pieces = [_literal(before + item + after, setting)[0] for item in items]
    ended = [_Piece(piece.text, piece.known, piece.split, ends=True) for piece in pieces[:-1]]
    return [*ended, pieces[-1]]


def _string(node: Node, setting: Setting, quoted: bool) -> list[_Piece]:
    start = 2 if node.type == "translated_string" else 1
    pieces = _mixed(node, node.start_byte + start, node.end_byte - 1, setting)
    return pieces or [_Piece("")]


def _mixed(node: Node, start: int, end: int, setting: Setting) -> list[_Piece]:
    """The text between two bytes, expanded as in double quotes."""
    source = node.text or b""
    base = node.start_byte
    pieces: list[_Piece] = []

    def literal(first: int, last: int) -> None:
        text = source[first - base : last - base].decode("utf-8", errors="replace")
        if text:
            pieces.append(_Piece(_QUOTED_ESCAPE.sub(lambda f: f[1].replace("\n", ""), text)))

    for child in _expansions(node, start, end):
        # The grammar includes the blanks before a second expansion.
        text = child.text or b""
        literal(start, child.start_byte + len(text) - len(text.lstrip()))
        pieces.extend(_pieces(child, setting, quoted=True))
        start = child.end_byte
    literal(start, end)
    return pieces


def _expansions(node: Node, start: int, end: int) -> Iterator[Node]:
    """Yield the outermost expansions between two bytes."""
    for child in node.children:
        if child.end_byte <= start or child.start_byte >= end:
            continue
        if child.type in _EXPANSIONS and child.start_byte >= start and child.end_byte <= end:
            yield child
        elif child.type not in _EXPANSIONS:
            yield from _expansions(child, start, end)


def _raw(node: Node, setting: Setting, quoted: bool) -> list[_Piece]:
    return [_Piece(text_of(node)[1:-1])]


def _ansi(node: Node, setting: Setting, quoted: bool) -> list[_Piece]:
    text = text_of(node)[2:-1]
    return [_Piece(_ESCAPE.sub(lambda found: _ANSI.get(found[1], found[1]), text))]


def _variable(node: Node, setting: Setting, quoted: bool) -> list[_Piece]:
    source = text_of(node).lstrip()
    name = source.lstrip("$")
    value = _look_up(name, setting)
    _note_unset(name, value, node, setting)
    return _of_value(name, value, source, quoted, every=name in "@*")


def _note_unset(name: str, value: Value | None, node: Node, setting: Setting) -> None:
    """Record a variable that nothing sets, where this has an effect."""
    known = setting.record.given is not None and not setting.blind
    if (
        value is not None
        or not known
        or not name.partition("[")[0].isidentifier()
        or _is_set_by_system(name)
    ):
        return
    place = setting.script.place(*node.start_point)
    if "nounset" in setting.options:
        setting.record.problem("unset", place, name, certain=setting.sure)
    elif node.parent is not None:
        around = node.parent.text or b""
        before = around[: node.start_byte - node.parent.start_byte]
        after = around[node.end_byte - node.parent.start_byte :]
        if after[:1] == b"/" and before in (b"", b'"'):
            setting.record.problem("root", place, name, certain=setting.sure)


def _of_value(
    name: str, value: Value | None, source: str, quoted: bool, *, every: bool
) -> list[_Piece]:
    """The pieces of a variable's value; ``every``: of all items of an array."""
    if value is None:
        return [_Piece(source, known=False, split=not quoted)]
    if isinstance(value, Word):
        split = not quoted
        if value.parts:
            return [_Piece(text, known, split) for text, known in value.parts]
        return [_Piece(value.text if value.known else source, value.known, split or value.many)]
    words = value if every else value[:1]
    if not words:
        return [_Piece("", split=True)]
    pieces = [_Piece(word.text, word.known, word.many or not quoted, ends=True) for word in words]
    last = pieces[-1]
    return [*pieces[:-1], _Piece(last.text, last.known, last.split)]


def _look_up(name: str, setting: Setting) -> Value | None:
    """The value of a variable or parameter."""
    place = setting.script.place(0)
    if name in ("@", "*"):
        return setting.arguments
    if name == "#":
        exact = not any(word.many for word in setting.arguments)
        return Word(str(len(setting.arguments)), place) if exact else None
    if name == "0" or name == "BASH_SOURCE":
        return Word(setting.script.path, place) if setting.script.path else None
    if name.isascii() and name.isdigit():
        before = setting.arguments[: int(name)]
        if any(word.many for word in before):
            return None
        return before[-1] if len(before) == int(name) else Word("", place)
    return setting.value(name)


def _expansion(node: Node, setting: Setting, quoted: bool) -> list[_Piece]:
    """``${name}`` with any suffix."""
    subject = next(
        (
            c
            for c in node.children
            if c.type in ("variable_name", "subscript", "special_variable_name")
        ),
        None,
    )
    source = text_of(node).lstrip()
    unknown = [_Piece(source, known=False, split=not quoted)]
    if subject is None or source[2:3] == "!":
        return unknown
    name, value, every = _subject(subject, setting)
    if source[2:3] == "#" and len(source) > 4:
        return _length(value, unknown)
    operator = next((c for c in node.children if c.start_byte >= subject.end_byte), None)
    if operator is None or operator.type == "}":
        _note_unset(name, value, node, setting)
        return _of_value(name, value, source, quoted, every=every)
    given = _mixed(node, operator.end_byte, node.end_byte - 1, setting)
    argument = None
    if all(piece.known for piece in given):
        argument = _unquoted("".join(piece.text for piece in given))
    if operator.type in _DEFAULTS:
        return _or_default(operator.type, name, value, argument, source, quoted, every, setting)
    if operator.type == ":" and every:
        # The parameters of a script are numbered from 1.
        items = (
            (Word("", SourceLocation("")), *value)
            if name == "@" and isinstance(value, tuple)
            else value
        )
        return _sliced(items, argument, quoted) or unknown
    changed = _changed(operator.type, value, argument)
    return unknown if changed is None else [_Piece(changed, split=not quoted)]


def _sliced(value: Value | None, argument: str | None, quoted: bool) -> list[_Piece]:
    """``${@:2}`` and ``${A[@]:1:2}``; None if unknown."""
    found = re.fullmatch(r" *(\d{1,4})(?: *: *(\d{1,4}))?", argument or "")
    if found is None or not isinstance(value, tuple) or any(word.many for word in value):
        return []
    start = int(found[1])
    words = value[start : start + int(found[2]) if found[2] else None]
    return _of_value("", words, "", quoted, every=True)


def _unquoted(text: str) -> str:
    quotes = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quotes else text


def _subject(node: Node, setting: Setting) -> tuple[str, Value | None, bool]:
    """The name in ``${...}``, its value, and whether all items of an array are selected."""
    if node.type != "subscript":
        name = text_of(node)
        return name, _look_up(name, setting), name in ("@", "*")
    name, _, index = text_of(node).rstrip("]").partition("[")
    value = _look_up(name, setting)
    if index in ("@", "*"):
        return name, value, True
    if name == "BASH_SOURCE":
        return name, value if index == "0" else None, False
    at = node.child_by_field_name("index")
    unknown = Word(text_of(node), setting.script.place(*node.start_point), known=False)
    if not isinstance(value, tuple) or at is None:
        return name, value and unknown, False
    number = arithmetic(at, setting)
    last = setting.value("SLURM_ARRAY_TASK_MAX")
    if number is None and last is not None and setting.value(_TASK) is not None:
        # The tasks of an array select their items by their numbers: the last one must have an item too.
        setting.variables[_TASK] = last
        number = arithmetic(at, setting)
        del setting.variables[_TASK]
        if number is not None and -len(value) <= number < len(value):
            number = None
    if number is None or any(word.many or word.text[:1] == "[" for word in value):
        return name, unknown, False
    if -len(value) <= number < len(value):
        return name, value[number], False
    return f"{name}[{number}]", None, False


_TASK = "SLURM_ARRAY_TASK_ID"


def _length(value: Value | None, unknown: list[_Piece]) -> list[_Piece]:
    words = value if isinstance(value, tuple) else (value,) if value else ()
    if value is None or not all(word.known and not word.many for word in words):
        return unknown
    return [_Piece(str(len(value) if isinstance(value, tuple) else len(value.text)))]


_DEFAULTS = frozenset({":-", "-", ":=", "=", ":+", "+", ":?", "?"})


def _or_default(
    operator: str,
    name: str,
    value: Value | None,
    argument: str | None,
    source: str,
    quoted: bool,
    every: bool,
    setting: Setting,
) -> list[_Piece]:
    """``${A:-b}`` and similar forms; a variable that only a batch system sets may be set."""
    unknown = [_Piece(source, known=False, split=not quoted)]
    if value is None and _is_set_by_system(name) and _on_system(setting):
        return unknown
    empty = isinstance(value, Word) and value.known and not value.text
    missing = value is None or (empty and operator[0] == ":") or value == ()
    # A positional parameter that is not given is unset, not empty.
    missing = missing or (empty and name.isdigit())
    if isinstance(value, Word) and not value.known:
        return unknown
    if operator in (":+", "+"):
        missing = not missing
        value = Word("", SourceLocation(""))
    if not missing:
        return _of_value(name, value, source, quoted, every=every)
    return unknown if argument is None else [_Piece(argument, split=not quoted)]


def _on_system(setting: Setting) -> bool:
    """Whether a batch system may have set variables that are unknown here."""
    used = map(launchers.of, setting.draft.launchers)
    return setting.record.given is None or any(tool and tool.set_on_nodes for tool in used)


def _is_set_by_system(name: str) -> bool:
    """Whether the shell, a batch system or a launcher may set a variable."""
    return _BY_SHELL.fullmatch(name) is not None or name.startswith(launchers.reserved_variables())


def _changed(operator: str, value: Value | None, argument: str | None) -> str | None:
    """A value without a part, or in capitals; None if unknown."""
    if not isinstance(value, Word) or not value.known or argument is None:
        return None
    text = value.text
    if operator in ("^^", ",,"):
        return text.upper() if operator == "^^" else text.lower()
    if operator in ("%", "%%"):
        ends = range(len(text), -1, -1) if operator == "%" else range(len(text) + 1)
        return next((text[:n] for n in ends if fnmatch.fnmatchcase(text[n:], argument)), text)
    if operator in ("#", "##"):
        starts = range(len(text) + 1) if operator == "#" else range(len(text), -1, -1)
        return next((text[n:] for n in starts if fnmatch.fnmatchcase(text[:n], argument)), text)
    if operator in ("/", "//"):
        old, _, new = argument.partition("/")
        if not old or set(old) & set("*?[\\"):
            return None
        return text.replace(old, new, 1 if operator == "/" else -1)
    return None


def _substitution(node: Node, setting: Setting, quoted: bool) -> list[_Piece]:
    """``$(...)`` if it only changes a text: ``dirname``, ``pwd`` and similar commands."""
    commands = [child for child in node.named_children if child.type != "comment"]
    found = _pure(commands[0], setting) if len(commands) == 1 else None
    if found is None:
        return [_Piece(text_of(node).lstrip(), known=False, split=not quoted)]
    return [_Piece(found, split=not quoted)]


def _pure(node: Node, setting: Setting) -> str | None:
    """The output of a command, if its words alone determine it."""
    if node.type == "redirected_statement":
        body = node.child_by_field_name("body")
        return _pure(body, setting) if body else None
    if node.type == "list":
        return _where(node, setting)
    if node.type != "command":
        return None
    words = [word for child in node.named_children for word in words_of(_inner(child), setting)]
    if not words or any(not word.known or word.many for word in words):
        return None
    name, *arguments = (word.text for word in words)
    return _print(name, [text for text in arguments if text != "--"], setting)


def _inner(node: Node) -> Node:
    return node.named_children[0] if node.type == "command_name" and node.named_children else node


def _where(node: Node, setting: Setting) -> str | None:
    """``cd FOLDER && pwd``."""
    first, last = node.named_children[0], node.named_children[-1]
    if node.named_child_count != 2 or text_of(last).split() not in (["pwd"], ["pwd", "-P"]):
        return None
    first = first.child_by_field_name("body") or first
    words = [word for child in first.named_children for word in words_of(_inner(child), setting)]
    texts = [word.text for word in words if word.known and word.text not in ("--", "-P")]
    if len(texts) != 2 or texts[0] != "cd":
        return None
    return _absolute(texts[1], setting)


def _absolute(text: str, setting: Setting) -> str | None:
    if setting.lost and not os.path.isabs(text):
        return None
    return os.path.abspath(setting.draft.folder / text)


def _print(name: str, arguments: list[str], setting: Setting) -> str | None:
    """The output of a few programs."""
    options = [text for text in arguments if text.startswith("-")]
    operands = [text for text in arguments if not text.startswith("-")]
    if name == "pwd":
        return _absolute(".", setting)
    if name == "echo" and not options:
        return " ".join(operands)
    if name == "dirname" and len(operands) == 1:
        return os.path.dirname(operands[0].rstrip("/")) or "."
    if name == "basename" and operands and not options:
        base = os.path.basename(operands[0].rstrip("/"))
        return base.removesuffix(operands[1]) if len(operands) == 2 else base
    if name in ("realpath", "readlink") and len(operands) == 1:
        return _absolute(operands[0], setting)
    if name == "seq" and all(_WHOLE.fullmatch(text) for text in arguments):
        return _numbers([int(text) for text in arguments])
    return None


def _numbers(given: list[int]) -> str | None:
    """``seq last``, ``seq first last``, ``seq first step last``."""
    if not 1 <= len(given) <= 3:
        return None
    first = given[0] if len(given) > 1 else 1
    step = given[1] if len(given) == 3 else 1
    if not step:
        return None
    numbers = range(first, given[-1] + (1 if step > 0 else -1), step)
    return "\n".join(map(str, numbers)) if len(numbers) <= MOST_BRACES else None


def _calculated(node: Node, setting: Setting, quoted: bool) -> list[_Piece]:
    inner = node.named_children
    number = arithmetic(inner[0], setting) if len(inner) == 1 else None
    if number is None:
        return [_Piece(text_of(node), known=False, split=not quoted)]
    return [_Piece(str(number))]


def _range(node: Node, setting: Setting, quoted: bool) -> list[_Piece]:
    return _braces(text_of(node), setting)


_OPERATORS: dict[str, Callable[[int, int], int | bool]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "&&": lambda a, b: bool(a and b),
    "||": lambda a, b: bool(a or b),
}
_LARGEST = 1 << 63


def arithmetic(node: Node, setting: Setting, depth: int = 0) -> int | None:
    """The value of an arithmetic expression; None if unknown."""
    if depth > 50:
        return None
    if (
        node.type in ("parenthesized_expression", "arithmetic_expansion")
        and node.named_child_count == 1
    ):
        return arithmetic(node.named_children[0], setting, depth + 1)
    if node.type == "binary_expression":
        return _binary(node, setting, depth)
    if node.type in ("number", "word", "variable_name", "simple_expansion", "expansion", "string"):
        return _whole(node, setting)
    return None


def _binary(node: Node, setting: Setting, depth: int) -> int | None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    sign = node.child_by_field_name("operator")
    if left is None or right is None or sign is None:
        return None
    a, b = arithmetic(left, setting, depth + 1), arithmetic(right, setting, depth + 1)
    if a is None or b is None:
        return None
    if sign.type in ("/", "%"):
        if not b:
            return None
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if sign.type == "/" else a - b * quotient
    operation = _OPERATORS.get(sign.type)
    value = None if operation is None else int(operation(a, b))
    return value if value is not None and abs(value) < _LARGEST else None


def _whole(node: Node, setting: Setting) -> int | None:
    text = text_of(node)
    if node.type in ("word", "variable_name") and not _WHOLE.fullmatch(text):
        value = _look_up(text, setting)
        return int(value.text) if isinstance(value, Word) and _is_whole(value) else None
    word = one(node, setting, SourceLocation(""))
    return int(word.text) if _is_whole(word) else None


def _is_whole(word: Word) -> bool:
    return word.known and _WHOLE.fullmatch(word.text) is not None


_READERS: dict[str, Callable[[Node, Setting, bool], list[_Piece]]] = {
    "concatenation": _concatenation,
    "string": _string,
    "translated_string": _string,
    "raw_string": _raw,
    "ansi_c_string": _ansi,
    "simple_expansion": _variable,
    "expansion": _expansion,
    "command_substitution": _substitution,
    "arithmetic_expansion": _calculated,
    "brace_expression": _range,
}
