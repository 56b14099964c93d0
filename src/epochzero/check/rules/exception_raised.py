"""The program certainly reaches a line at which it raises an exception."""

from __future__ import annotations

from collections.abc import Mapping

from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Rule,
    Target,
    claim_failure,
    failures,
)

_CATEGORIES: Mapping[str, str] = {
    "AttributeError": "attribute_not_found",
    "FileNotFoundError": "path_not_found",
    "ImportError": "library_not_found",
    "ModuleNotFoundError": "library_not_found",
    "NotADirectoryError": "path_not_found",
    "NotImplementedError": "not_implemented",
    "PermissionError": "permission_denied",
    "TypeError": "type_mismatch",
}


def _check(program: Program, target: Target) -> Claims:
    for failed in failures(program, "abstract", "raised"):
        is_abstract = failed.kind == "abstract"
        if not failed.at.certain:
            continue
        yield claim_failure(
            failed,
            category="not_implemented"
            if is_abstract
            else _CATEGORIES.get(failed.error, RULE.category),
            message=failed.message + "."
            if is_abstract
            else (
                "With these arguments the program reaches this line and raises: "
                f"{failed.at.place.code}"
            ),
            fix="Implement the method in the class."
            if is_abstract
            else "Pass a supported value, or implement the missing case.",
        )


_BUILD = (
    "import argparse\n\n\ndef build(name):\n    if name == 'sgd':\n        return 1\n"
    "    raise ValueError(f'no optimizer {name}')\n\n\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--optimizer', default='sgd')\nbuild(parser.parse_args().optimizer)\n"
)
_BASE = (
    "from abc import ABC, abstractmethod\n\n\nclass Task(ABC):\n    @abstractmethod\n"
    "    def test(self):\n        pass\n\n\nclass Mine(Task):\n    def {}(self):\n        print(1)\n\n\n"
    "Mine()\n"
)

RULE = Rule(
    title="The program reaches a line at which it raises an exception",
    category="illegal_argument",
    why="A program rejects an unknown value, or a method that is not implemented, when it first "
    "uses it. In evaluation code that is after the training.",
    fix="Pass a supported value, or implement the missing case.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Argument and Not Implemented",
    check=_check,
    general=True,
    catches=(
        Case({"train.py": _BUILD}, ("--optimizer", "adam"), line=7),
        Case({"train.py": "class Base:\n    def test(self):\n        raise NotImplementedError\n\n\n"
              "class Mine(Base):\n    pass\n\n\nMine().test()\n"}, line=3),
        Case({"train.py": _BASE.format("tests")}, line=15),
    ),
    leaves=(
        Case({"train.py": _BUILD}),
        Case({"train.py": _BASE.format("test")}),
        Case({"train.py": _BUILD.replace("build(parser", "try:\n    build(parser")
              + "except ValueError:\n    pass\n"}, ("--optimizer", "adam")),
        Case({"train.py": "import random\n\nif random.random() > 2:\n    raise ValueError('no')\n"}),
        Case({"train.py": "for _ in range(3):\n    try:\n        open('data.txt')\n        break\n"
              "    except OSError:\n        pass\nelse:\n    raise RuntimeError('no data')\n"}),
    ),
)  # fmt: skip
