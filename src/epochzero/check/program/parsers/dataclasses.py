"""transformers' ``HfArgumentParser``: fields of dataclasses as options of argparse.

Source: its documentation and `_parse_dataclass_field`. ``bool`` fields accept an optional truth value and, if true by
default, have a ``--no_`` counterpart; lists accept one or more values; underscores may be dashes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from epochzero.check.program.parsers import standard
from epochzero.check.program.parsers.model import (
    ArgumentProblem,
    OptionSpec,
    ParsedCommand,
    ParserSpec,
)
from epochzero.check.program.values import Anything, Constant, External, Items, Value, constant_of

_SIMPLE = ("int", "float", "str", "complex")
_TRUTH = External("transformers.hf_argparser.string_to_bool")


def parse(spec: ParserSpec, argv: Sequence[str], folder: Path | None = None) -> ParsedCommand:
    """Parse a command line like ``HfArgumentParser``; see `epochzero.check.program.arguments.parse`."""
    options = [option for field in spec.options for option in _options(field)]
    parsed = standard.parse(replace(spec, kind="argparse", options=tuple(options)), argv, folder)
    return replace(parsed, spec=spec, problems=tuple(map(_reworded, parsed.problems)))


def _reworded(problem: ArgumentProblem) -> ArgumentProblem:
    unknown = problem.message.removeprefix("unrecognized arguments: ")
    if unknown == problem.message:
        return problem
    message = (
        "ValueError: Some specified arguments are not used by the HfArgumentParser: "
        f"{unknown.split()}"
    )
    return replace(problem, message=message)


def _options(field: OptionSpec) -> list[OptionSpec]:
    """The options of a field."""
    name = field.flags[0].lstrip("-")
    flags = tuple(dict.fromkeys((f"--{name}", f"--{name.replace('_', '-')}")))
    annotation = field.keywords.get("annotation")
    source = annotation.value if isinstance(annotation, Constant) else None
    default = field.keywords.get("default")
    if "default_factory" in field.keywords and default is None:
        default = Anything("a default that a function makes")
    core = _without_none(_parsed(source))
    keywords: dict[str, Value] = {} if default is None else {"default": default}
    name_of = ast.unparse(core) if core is not None else ""
    if name_of == "bool":
        return _truth(OptionSpec(flags, keywords, field.place), name, optional=core is not None
                      and source != "bool")  # fmt: skip
    if default is None:
        keywords["required"] = Constant(True)
    if isinstance(core, ast.Subscript) and ast.unparse(core.value).rpartition(".")[2] == "Literal":
        return [OptionSpec(flags, keywords | _literal(core), field.place)]
    if isinstance(core, ast.Subscript) and ast.unparse(core.value).rpartition(".")[2] in (
        "List",
        "list",
    ):
        keywords["nargs"] = Constant("+")
        name_of = ast.unparse(core.slice)
    if name_of == "Any":
        name_of = "str"
    keywords["type"] = (
        External(f"builtins.{name_of}") if name_of in _SIMPLE else Anything("a type of the program")
    )
    return [OptionSpec(flags, keywords, field.place)]


def _truth(option: OptionSpec, name: str, *, optional: bool) -> list[OptionSpec]:
    default = option.keywords.get("default")
    keywords: dict[str, Value] = {**option.keywords, "type": _TRUTH}
    if not optional or (default is not None and constant_of(default, "") is not None):
        keywords |= {"nargs": Constant("?"), "const": Constant(True)}
        keywords.setdefault("default", Constant(False, option.place))
    found = [OptionSpec(option.flags, keywords, option.place)]
    if isinstance(default, Constant) and default.value is True:
        flags = tuple(dict.fromkeys((f"--no_{name}", f"--no-{name.replace('_', '-')}")))
        off = {"action": Constant("store_false"), "dest": Constant(name), "default": default}
        found.append(OptionSpec(flags, off, option.place))
    return found


def _literal(core: ast.Subscript) -> dict[str, Value]:
    items = core.slice.elts if isinstance(core.slice, ast.Tuple) else [core.slice]
    choices = [
        item.value
        for item in items
        if isinstance(item, ast.Constant) and isinstance(item.value, str | int)
    ]
    kinds = {type(choice).__name__ for choice in choices}
    known: dict[str, Value] = {
        "type": External(f"builtins.{next(iter(kinds))}") if len(kinds) == 1 else Anything("mixed")
    }
    known["choices"] = Items("list", tuple(Constant(choice) for choice in choices))
    return known


def _parsed(source: object) -> ast.expr | None:
    try:
        tree = ast.parse(str(source), mode="eval").body if isinstance(source, str) else None
        # An annotation may itself be a text.
        if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
            return ast.parse(tree.value, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    return tree


def _without_none(tree: ast.expr | None) -> ast.expr | None:
    """``X`` for ``Optional[X]``, ``Union[X, None]`` and ``X | None``; None if several types remain."""
    if isinstance(tree, ast.Subscript):
        name = ast.unparse(tree.value).rpartition(".")[2]
        if name == "Optional":
            return tree.slice
        if name == "Union":
            parts = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
            return _only(parts)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
        return _only([tree.left, tree.right])
    return tree


def _only(parts: Sequence[ast.expr]) -> ast.expr | None:
    left = [part for part in parts if not (isinstance(part, ast.Constant) and part.value is None)]
    return left[0] if len(left) == 1 else None
