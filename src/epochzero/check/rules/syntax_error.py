"""A module of the job does not parse."""

import ast
import re
import sys
from collections.abc import Iterator

from epochzero.check.program.syntax import code_of
from epochzero.check.rule import (
    Case,
    Claim,
    Claims,
    JobView,
    Module,
    Program,
    Rule,
    SourceLocation,
    Target,
    Unknown,
    claim_at_start,
)
from epochzero.check.rules.flakes import flakes, reading

NEWER_PYTHON = re.compile(r"only supported in Python (\d+)\.(\d+)")
"""How Python's parser reports that a feature needs a newer version."""
# Syntax that a Python newer than the running one may accept: PEP 695, 701, 750, 758.
_NEWER_SYNTAX = re.compile(
    r"\b[rR]?[ftFT][rR]?['\"]|^\s*type\s+\w|^\s*(async\s+)?(def|class)\s+\w+\s*\[|^\s*except\b"
)
_PYTHON_2 = re.compile(r"Missing parentheses in call|multiple exception types|leading zeros in dec")
_FLAKES = {
    "F404": "from __future__ imports must occur at the beginning of the file",
    "F406": "import * only allowed at module level",
    "F407": "future feature {0} is not defined",
    "F622": "multiple starred expressions in assignment",
    "F701": "'break' outside loop",
    "F702": "'continue' not properly in loop",
    "F704": "'{0}' outside function",
    "F706": "'return' outside function",
    "F707": "default 'except:' must be last",
}


def _check(view: JobView) -> Claims:
    for module in view.modules:
        if module.error is not None and not NEWER_PYTHON.search(module.error.msg or ""):
            yield _of_module(view.program, module, view.target)
        for argument in _given_twice(module):
            message = f"duplicate argument {argument.arg!r} in function definition"
            yield _claim(view.program, module, module.place(argument), message, "SyntaxError")
    for flake in flakes(view, _FLAKES):
        message = _FLAKES[flake.code].format(*flake.values)
        yield _claim(view.program, flake.module, flake.at.place, message, "SyntaxError")


def _given_twice(module: Module) -> Iterator[ast.arg]:
    """Parameters whose name occurs twice in a function; only the compiler rejects them."""
    for given in code_of(module).of(ast.arguments):
        seen: set[str] = set()
        named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        for argument in filter(None, named):
            if argument.arg in seen:
                yield argument
            seen.add(argument.arg)


def _of_module(program: Program, module: Module, target: Target) -> Claim | Unknown:
    error = module.error
    assert error is not None
    line = module.place(error.lineno or 0)
    place = SourceLocation(line.path, line.line, max(error.offset or 0, 0), line.code)
    message = error.msg or "invalid syntax"
    newer = target.python is not None and target.python[:2] > sys.version_info[:2]
    if newer and not isinstance(error, IndentationError) and _NEWER_SYNTAX.search(line.code):
        here = ".".join(map(str, sys.version_info[:2]))
        return Unknown(
            "syntax-error",
            f"Python {here}, which runs this check, does not know this syntax",
            place,
        )
    return _claim(program, module, place, message, type(error).__name__)


def _claim(
    program: Program, module: Module, place: SourceLocation, message: str, kind: str
) -> Claim:
    old = bool(_PYTHON_2.search(message))
    return claim_at_start(
        place,
        message=f"{module.path} does not parse: {message}.",
        consequence=f"{kind}: {message}",
        fix="This is Python 2 code: port it, starting with 2to3." if old else RULE.fix,
        via=next(
            (
                imported.at.via
                for imported in program.imports
                if imported.at.place.path == module.path
            ),
            (),
        ),
    )


RULE = Rule(
    category="syntax_error",
    why="Python parses a module when the program imports the module. An import within a function "
    "can therefore fail after hours. More often, a syntax error comes from an edit that was never "
    "run.",
    fix="Correct the line. `python -m py_compile FILE` reports the same error.",
    source="Zhang et al., ICSE 2020, Table 1: Syntax Error, 64 of 4,960 failures",
    check=_check,
    background=reading,
    examples="""
            epochs = 3
            for epoch in range(epochs)  # <-
                print(epoch)
            ----
            import model
            ==> model.py <==
            print 'loaded'  # <-
            ----
            for x in (1, 2):
                print(x)
            return  # <-
            ----
            def f(a, a):  # <-
                return a

            f(1, 2)
        """,
    further_cases=(Case({"train.py": "if True:\n\tprint('tabs')\n"}),),
)
