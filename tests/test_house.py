"""The rules of the house: rooms know only those above them, and only the command line speaks."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.catalogs import every
from tests.platform.emulate import POSIX_MODULES

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "epochzero"
MODELS = ROOT / "models" / "src" / "epochzero_models"
MODULES = sorted(
    [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]
    + [f"models/{path.relative_to(MODELS).as_posix()}" for path in MODELS.rglob("*.py")]
)


def room_of(module: str) -> str:
    if module.startswith("models/cli/"):
        return "models.cli"
    return module.removesuffix(".py").split("/")[0].removesuffix("__init__")


# Each room with the rooms that it may know; all may know `platform`, `scratch` and `zstd`.
ROOMS = {
    "compiled": {"file_access"},
    "errors": set(),
    "file_access": set(),
    "platform": set(),
    "doctor": {"check"},
    "http_client": set(),
    "lazy_exports": set(),
    "redact": {"logs"},
    "number_formats": set(),
    "markdown": set(),
    "parquet": set(),
    "scratch": {"file_access"},
    "zstd": set(),
    "launchers": {"compiled"},
    "injected": {"launchers"},
    "taxonomy": {"errors"},
    "logs": {"number_formats", "compiled", "file_access", "errors", "taxonomy", "launchers"},
    "diagnose": {"compiled", "lazy_exports", "file_access", "redact", "errors", "taxonomy", "logs"},
    "code": {"file_access", "errors", "lazy_exports", "taxonomy"},
    "locate": {
        "http_client",
        "redact",
        "errors",
        "number_formats",
        "taxonomy",
        "logs",
        "diagnose",
        "code",
    },
    "data": {"errors", "parquet"},
    "reports": {"errors", "markdown"},
    # What ends a dry run is diagnosed as what ends a job.
    "check": {
        "file_access",
        "errors",
        "injected",
        "launchers",
        "lazy_exports",
        "taxonomy",
        "logs",
        "diagnose",
        "data",
    },
    "run": {
        "http_client",
        "number_formats",
        "redact",
        "errors",
        "injected",
        "launchers",
        "taxonomy",
        "logs",
        "diagnose",
        "code",
        "locate",
        "check",
    },
    "integrations": {"errors", "taxonomy", "run"},
    "store": {"errors", "taxonomy", "diagnose", "check", "run"},
    "scale": {"errors", "parquet", "logs", "diagnose"},
    "study": {
        "redact",
        "number_formats",
        "parquet",
        "errors",
        "reports",
        "taxonomy",
        "logs",
        "diagnose",
        "code",
        "locate",
        "check",
        "run",
        "store",
        "scale",
    },
    "agents": {
        "file_access",
        "redact",
        "errors",
        "taxonomy",
        "logs",
        "diagnose",
        "locate",
        "check",
        "store",
        "",
    },
    "github": {
        "http_client",
        "file_access",
        "redact",
        "errors",
        "number_formats",
        "markdown",
        "taxonomy",
        "diagnose",
        "locate",
        "check",
    },
    "web": {
        "http_client",
        "redact",
        "number_formats",
        "errors",
        "taxonomy",
        "logs",
        "diagnose",
        "run",
        "reports",
        "study",
        "store",
        "",
    },
    "cli": {
        "compiled",
        "errors",
        "number_formats",
        "markdown",
        "agents",
        "taxonomy",
        "logs",
        "diagnose",
        "code",
        "doctor",
        "locate",
        "data",
        "check",
        "github",
        "reports",
        "run",
        "store",
        "scale",
        "study",
        "web",
        "",
    },
    "__main__": {"cli"},
    # The other distribution, which nothing in the package may import.
    "models": {"errors", "lazy_exports", "taxonomy", "data", "reports"},
    "models.cli": {"errors", "reports", "cli", "models"},
}  # type: dict[str, set[str]]
# What runs a job, dry or not, does so in processes of its own.
CHILDREN = (
    "check/dryrun/child/",
    "check/dryrun/contain/inside/",
    "injected/",
    "integrations/",
    "run/process/guard.py",
    "run/inject/child/",
    "run/notes/child/",
    "run/simulate/child/",
    "run/simulate/inside/",
    "check/dryrun/fork_server.py",
    "run/replay/child/",
    "run/watch/child/",
)
BELOW = [
    name
    for name in MODULES
    if room_of(name) not in ("cli", "__main__", "models.cli") and not name.startswith(CHILDREN)
]


@cache
def tree(module: str) -> ast.Module:
    path = SOURCE / module
    if room_of(module).startswith("models"):
        path = MODELS / module.removeprefix("models/")
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(module: str) -> tuple[list[ast.Import | ast.ImportFrom | ast.Call | ast.Attribute], int]:
    """What tests ask of the nodes of a module; walking a tree takes as long as parsing it.

    Returns:
        The nodes, and how many of them are not below ``if TYPE_CHECKING``: they come first.
    """
    asked = (ast.Import, ast.ImportFrom, ast.Call, ast.Attribute)
    typing: list[ast.stmt] = []
    running: list[ast.stmt] = []
    for node in tree(module).body:
        checks = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        (typing if checks else running).append(node)
    found = [node for node in ast.walk(ast.Module(running, [])) if isinstance(node, asked)]
    below = [node for node in ast.walk(ast.Module(typing, [])) if isinstance(node, asked)]
    return found + below, len(found)


def dotted(node: ast.expr) -> str:
    """The text of a name with its attributes; empty for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


@cache
def imported(module: str) -> frozenset[str]:
    """The modules that a module imports, wherever it does so; not those for type checking only."""
    names: set[str] = set()
    found, running = nodes(module)
    for node in found[:running]:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            names.add(node.module or "")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@every("module", [name for name in MODULES if room_of(name)])
def test_a_room_knows_only_the_rooms_above_it(module: str) -> None:
    room = room_of(module)
    assert room in ROOMS, "a room that this test does not know: add it and what it may know"
    known = {other for name in imported(module) if (other := _room_of_import(name))}
    if room == "check" and not module.startswith("check/dryrun/"):
        assert not known & {"logs", "diagnose"}, "only a dry run has something to diagnose"
    assert known - {room, "compiled", "platform", "scratch", "zstd"} <= ROOMS[room]


@every("table", [0, 1, 2])
def test_the_architecture_lists_packages_in_the_order_of_their_imports(table: int) -> None:
    text = (
        (ROOT / "docs" / "architecture.md")
        .read_text(encoding="utf-8")
        .split("|---|---|")[table + 1]
    )
    first_cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    rows = [re.findall(r"`(?:src/epochzero/)?([\w/]+)(?:\.py)?`", cell) for cell in first_cells]
    place = {name: number for number, names in enumerate(rows) for name in names}
    wrong = set()
    for module in MODULES:
        part = _part_of(module.removesuffix(".py"), place)
        for name in imported(module):
            other = _part_of(name.removeprefix("epochzero.").replace(".", "/"), place)
            if part and other and place[part] < place[other]:
                wrong.add(f"{module} imports {other}")
    assert len(place) > 7
    assert not wrong


def _part_of(path: str, places: Mapping[str, int]) -> str:
    """The listed directory that contains a module; empty if none does."""
    return next((name for name in places if path == name or path.startswith(f"{name}/")), "")


def _room_of_import(name: str) -> str:
    """The room of an imported name; empty if it is none of ours."""
    package, _, rest = name.partition(".")
    if package == "epochzero_models":
        return "models.cli" if rest.split(".")[0] == "cli" else "models"
    room = rest.split(".")[0]
    exists = (SOURCE / room).is_dir() or (SOURCE / f"{room}.py").is_file()
    return room if package == "epochzero" and exists else ""


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {name_of(module): module for module in MODULES}
    # The package itself names the types of everything that it exports lazily.
    arrows = {name: _arrows(module, names) for name, module in names.items() if name != "epochzero"}
    # What leads to no module that is left, or is imported by none, is in no circle.
    while done := {
        name
        for name, others in arrows.items()
        if not others & arrows.keys() or not any(name in some for some in arrows.values())
    }:
        arrows = {name: others for name, others in arrows.items() if name not in done}
    assert arrows == {}


def name_of(module: str) -> str:
    path = module.removesuffix(".py").removeprefix("models/")
    words = ["epochzero_models" if path + ".py" != module else "epochzero", *path.split("/")]
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


def _arrows(module: str, names: Mapping[str, str]) -> set[str]:
    """The modules that a module imports, for type checking too."""
    found = set()
    for node in nodes(module)[0]:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            members = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in names else node.module or "" for name in members}
    return (found & names.keys()) - {name_of(module)}


def test_the_package_itself_imports_no_room() -> None:
    assert {n for n in imported("__init__.py") if n.startswith("epochzero.")} <= {
        "epochzero.errors",
        *(f"epochzero.errors.{name}" for name in ("CatalogError", "EpochZeroError", "InputError")),
        "epochzero.lazy_exports",
        "epochzero.lazy_exports.export_lazily",
    }


@every("module", BELOW)
def test_nothing_below_the_command_line_prints_exits_or_reads_the_environment(module: str) -> None:
    for node in nodes(module)[0]:
        if isinstance(node, ast.Call):
            assert dotted(node.func) not in {
                "print", "input", "exit", "quit", "sys.exit", "os._exit", "os.getenv", "click.echo",
                "eval", "exec", "compile", "pickle.load", "pickle.loads", "os.system",
            }, f"line {node.lineno}"  # fmt: skip
        # A child process is given its environment, and that of git is built from ours.
        given = {"code/git.py", "compiled.py"}
        if isinstance(node, ast.Attribute) and module not in given:
            assert dotted(node) not in {"os.environ", "sys.stdout", "sys.stderr", "sys.argv"}
    # The parser of a job is run in a process of its own.
    if module != "check/program/parser_process.py":
        assert not {n for n in imported(module) if n.split(".")[0] in {"click", "argparse"}}


@every("module", [name for name in MODULES if name.startswith("cli/")])
def test_the_command_line_reads_no_log_itself(module: str) -> None:
    assert not {
        name
        for name in imported(module)
        if name.split(".")[0] in {"hyperscan", "backports", "gzip", "numpy"}
    }


@every("module", MODULES)
def test_every_module_and_public_function_says_what_it_is_for(module: str) -> None:
    code = tree(module)
    if not code.body:
        return
    assert ast.get_docstring(code), "a module without a docstring"
    for node in code.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"
        if isinstance(node, ast.FunctionDef):
            assert node.returns is not None, f"{node.name} does not say what it returns"


_JOB_READERS = ("check/launch/", "check/paths/", "check/program/", "check/rules/", "logs/")
_NO_FILES = {"self", "packing", "tarfile", "files"}
"""What has an ``open`` that opens no path: a parser's own, a stream's, package data."""


def test_what_a_question_leads_to_is_opened_by_the_file_access() -> None:
    wrong = [
        f"{module}:{node.lineno}"
        for module in MODULES
        if module.startswith(_JOB_READERS)
        for node in nodes(module)[0]
        if isinstance(node, ast.Call) and _opens_a_path(node)
    ]
    assert wrong == []


def _opens_a_path(node: ast.Call) -> bool:
    called = node.func
    if isinstance(called, ast.Name) and called.id == "open":
        return not isinstance(node.args[0], ast.Constant)  # a descriptor of a child
    if not isinstance(called, ast.Attribute) or called.attr != "open":
        return False
    return ast.unparse(called.value).partition("(")[0].partition(".")[0] not in _NO_FILES


LOADED_ON_POSIX_ONLY = (
    "check/dryrun/contain/inside/",
    "injected/system.py",
    "run/process/guard.py",
    "run/observers/child/stacks.py",
    "run/simulate/inside/",
    "run/process/streams.py",
    "run/process/terminal.py",
)
"""What only a terminal, a job or Linux's namespaces load."""


@every("module", [name for name in MODULES if not name.startswith("models/")])
def test_modules_of_one_system_are_imported_where_they_are_needed(module: str) -> None:
    if module.startswith(LOADED_ON_POSIX_ONLY):
        return
    body = tree(module).body
    names = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in body if isinstance(node, ast.ImportFrom)}
    assert not names & {*POSIX_MODULES}
