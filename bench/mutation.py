"""How many small mistakes in the code the tests notice.

Draws mistakes in four modules, makes each in a copy of the source, and runs the tests of that module
until one fails. Nothing else is mutated, and the working tree is left as it is. Neither mutmut nor
cosmic-ray fits: the first runs the tests in its own process with every function wrapped, which the
tests that start processes do not see, and both write into the tree. `--repeat` makes the mistakes of
an earlier result again, where the source still has their place, so that two suites can be compared.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.common import REPOSITORY, SEED, save

MODULES = {
    "diagnose/verdict": (
        "tests/diagnose/test_verdict.py",
        "tests/diagnose/test_timeline.py",
        "tests/diagnose/test_reading.py",
        "tests/diagnose/test_facts.py",
        "tests/diagnose/test_deaths.py",
    ),
    "check/program": ("tests/check/program",),
    "store/recorder": (
        "tests/store/test_recorder.py",
        "tests/store/test_outbox.py",
        "tests/store/test_logs.py",
        "tests/web/test_job_writer.py",
    ),
    "run/retry": ("tests/run/retry",),
}
"""Each, below `src/epochzero`, with its tests."""

LONGEST_S = 900.0
"""A suite that is still running then has met an endless loop: the mistake is noticed."""


@dataclass(frozen=True)
class Mutant:
    """A mistake: the `ordinal`-th of the nodes of a file whose text and change are the same."""

    file: str
    kind: str
    before: str
    after: str
    ordinal: int


def changed(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What can be made of a node, each with the kind of mistake."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            yield "comparison", _with(node, ops=[COMPARISONS[type(operator)]()])
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and or", _with(node, op=other)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node.operand
        case ast.BinOp() if type(node.op) in OPERATORS:
            yield "operator", _with(node, op=OPERATORS[type(node.op)]())
        case ast.Constant(value=bool()):
            yield "constant", ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield "constant", ast.Constant(node.value + 1)
        case ast.If():
            yield "condition", _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Return(value=ast.expr()):
            yield "result", ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()):
            yield "call", ast.Pass()
        case ast.Break():
            yield "loop", ast.Continue()


COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


def _with(node: ast.AST, **fields: object) -> ast.AST:
    return type(node)(**{**{name: getattr(node, name) for name in node._fields}, **fields})


class _Places(ast.NodeTransformer):
    """Visits every node that runs, and replaces the one that `chosen` accepts."""

    def __init__(self, file: str, chosen: Callable[[Mutant], bool]) -> None:
        self.file = file
        self.chosen = chosen
        self.found: list[Mutant] = []
        self._seen: Counter[tuple[str, str]] = Counter()

    def visit(self, node: ast.AST) -> ast.AST:
        # Annotations do not run.
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                node.value = self.visit(node.value)  # type: ignore[assignment]
            return node
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [self.visit(one) for one in node.body]  # type: ignore[misc]
            return node
        for kind, other in changed(node):
            text, new = ast.unparse(node), ast.unparse(other)
            if new == text:
                continue
            mutant = Mutant(self.file, kind, text, new, self._seen[kind, text])
            self._seen[kind, text] += 1
            self.found.append(mutant)
            if self.chosen(mutant):
                return ast.copy_location(copy.deepcopy(other), node)
        return self.generic_visit(node)


def places(source: Path, module: str) -> list[Mutant]:
    """All mistakes that can be made in a module or package."""
    path = source / module
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    found: list[Mutant] = []
    for file in files:
        visitor = _Places(file.relative_to(source).as_posix(), lambda _: False)
        visitor.visit(ast.parse(file.read_text(encoding="utf-8")))
        found += visitor.found
    return found


def mutated(source: Path, mutant: Mutant) -> str:
    """The text of the file with the mistake."""
    visitor = _Places(mutant.file, lambda found: found == mutant)
    tree = visitor.visit(ast.parse((source / mutant.file).read_text(encoding="utf-8")))
    return ast.unparse(ast.fix_missing_locations(tree))


def noticed(repository: Path, source: Path, tests: tuple[str, ...]) -> bool:
    """Whether a test fails with the source that is in a folder."""
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
        *(path for path in tests if (repository / path).exists()),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(source.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=repository, env=environment, capture_output=True,
            text=True, check=False, timeout=LONGEST_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def measured(repository: Path, module: str, mutants: list[Mutant]) -> dict[str, object]:
    """Which of a module's mistakes its tests notice."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src" / "epochzero"
        shutil.copytree(repository / "src" / "epochzero", source)
        if noticed(repository, source, MODULES[module]):
            sys.exit(f"{module}: its tests fail without a mistake")
        for mutant in mutants:
            text = (source / mutant.file).read_text(encoding="utf-8")
            (source / mutant.file).write_text(mutated(source, mutant), encoding="utf-8")
            killed = noticed(repository, source, MODULES[module])
            (source / mutant.file).write_text(text, encoding="utf-8")
            print(f"{module}: {'noticed' if killed else 'MISSED '} {mutant}", flush=True)
            results.append({**asdict(mutant), "killed": killed})
    killed = sum(bool(result["killed"]) for result in results)
    return {"mutants": len(results), "killed": killed, "each": results}


def main() -> None:
    """Prints each mistake and stores the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=40, metavar="N", help="mistakes a module")
    parser.add_argument(
        "--repository", type=Path, default=REPOSITORY, help="whose tests and source"
    )
    parser.add_argument("--repeat", type=Path, metavar="RESULT", help="make the same mistakes")
    parser.add_argument("--name", default="mutation", help="of the result file")
    options = parser.parse_args()
    repository = options.repository.resolve()
    source = repository / "src" / "epochzero"
    earlier = json.loads(options.repeat.read_text()) if options.repeat else None
    result: dict[str, object] = {}
    for module in MODULES:
        possible = places(source, module)
        if earlier:
            fields = ("file", "kind", "before", "after", "ordinal")
            drawn = [
                Mutant(*(m[f] for f in fields))
                for m in earlier["numbers"]["modules"][module]["each"]
            ]
            mutants = [mutant for mutant in drawn if mutant in possible]
        else:
            mutants = random.Random(SEED).sample(possible, min(options.sample, len(possible)))
        result[module] = measured(repository, module, mutants) | {"possible": len(possible)}
    save(options.name, {"modules": result})


if __name__ == "__main__":
    main()
