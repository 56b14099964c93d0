"""The public calls, whatever was imported before."""

from __future__ import annotations

import ast
import hashlib
import importlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from packaging.requirements import Requirement

import epochzero.cli

BEFORE = [
    "",
    "from epochzero.locate import Locator; from epochzero.diagnose import Diagnosis",
    "import epochzero.locate.search, epochzero.diagnose.model",
    "import epochzero; epochzero.Report; epochzero.Facts",
    "from epochzero import locate, diagnose",
    "import epochzero.cli.locate, epochzero.cli.diagnose",
]
CALLS = """
import epochzero
for call in (epochzero.locate, epochzero.diagnose):
    try:
        call("nowhere/at/all", "nowhere/at/all")
    except epochzero.InputError:
        print("called")
from epochzero.locate import Locator, locate
from epochzero.diagnose import Diagnosis, diagnose
assert (epochzero.Locator, epochzero.locate) == (Locator, locate)
assert (epochzero.Diagnosis, epochzero.diagnose) == (Diagnosis, diagnose)
"""


@pytest.mark.parametrize("before", BEFORE)
def test_the_documented_calls_work_whatever_was_imported(before: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", f"{before}\n{CALLS}"], capture_output=True, text=True, check=False
    )
    assert (ran.stdout.split(), ran.stderr) == (["called", "called"], "")


@pytest.mark.parametrize("name", sorted(epochzero.cli._COMMANDS))
def test_each_command_starts_on_its_own(name: str) -> None:
    command = [sys.executable, "-m", "epochzero", name, "--help"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "code", "printed"),
    [
        (("--dry",), 0, "NOTHING FOUND"),
        (("--data", "train.csv=profile.json"), 2, "requires numpy: pip install 'epochzero[data]'"),
    ],
)
def test_a_check_without_extras(
    tmp_path: Path, options: tuple[str, ...], code: int, printed: str
) -> None:
    """NumPy is the extra of data sets: a dry run needs it only for those."""
    (tmp_path / "train.py").write_text("print('trained')\n")
    words = ["epochzero", "check", *options, "--", sys.executable, "train.py"]
    program = f"import sys; sys.modules['numpy'] = None; sys.argv = {words}; import epochzero.cli; epochzero.cli.main()"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == code
    assert printed in ran.stdout + ran.stderr


def test_dir_lists_the_public_names() -> None:
    assert dir(epochzero) == sorted(epochzero.__all__)
    assert all(hasattr(epochzero, name) for name in epochzero.__all__)


@pytest.mark.parametrize("name", ["epochzero", "epochzero.check", "epochzero.diagnose"])
def test_type_checkers_see_the_public_names(name: str) -> None:
    """They take an import of a typed package for its name only if it is repeated after ``as``."""
    importlib.import_module(name)
    package = sys.modules[name]
    program = ast.parse(Path(package.__file__ or "").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(program) if isinstance(node, ast.ImportFrom)]
    shown = {alias.name for node in imports for alias in node.names if alias.asname == alias.name}
    defined = {node.name for node in program.body if isinstance(node, ast.FunctionDef)}
    assert {*package.__all__} - {"__version__"} == shown | defined


def test_starting_loads_no_room() -> None:
    code = "import epochzero, sys; print([n for n in sys.modules if n.startswith('epochzero.')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['epochzero.lazy_exports']"


def test_a_command_of_a_distribution_that_is_missing_says_what_to_install(tmp_path: Path) -> None:
    # All that is installed but that distribution.
    for item in Path(sysconfig.get_path("purelib")).iterdir():
        if not item.name.startswith(("epochzero_models", "_editable_impl_epochzero_models")):
            (tmp_path / item.name).symlink_to(item)
    source = Path(epochzero.__file__).parent.parent
    ran = subprocess.run(
        [sys.executable, "-S", "-m", "epochzero", "model", "dissect", "--help"],
        env={"PYTHONPATH": f"{source}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        2,
        "",
        "epochzero: `epochzero model` requires another package: pip install 'epochzero[models]'\n",
    )


def _versions(project: Path) -> tuple[str, list[str]]:
    """The version of a distribution, and the versions of the other one that it requires."""
    described = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [
        *described["dependencies"],
        *(one for extra in described["optional-dependencies"].values() for one in extra),
    ]
    return described["version"], [
        one for one in required if one.startswith("epochzero") and "==" in one
    ]


def test_both_distributions_have_the_same_version() -> None:
    root = Path(__file__).resolve().parent.parent
    core, models = _versions(root), _versions(root / "models")
    assert core[0] == models[0] == epochzero.__version__
    assert {one.partition("==")[2] for one in (*core[1], *models[1])} == {core[0]}


def _root() -> Path:
    return Path(__file__).resolve().parent.parent


def test_the_authors_of_a_cited_work_differ() -> None:
    """Two of them share a family name, and the format's schema requires unique authors."""
    cited = yaml.safe_load(
        (Path(__file__).resolve().parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    )["references"]
    for work in cited:
        authors = [tuple(author.items()) for author in work["authors"]]
        assert len(set(authors)) == len(authors)


def test_the_conda_recipe_requires_what_the_distribution_requires() -> None:
    described = tomllib.loads((_root() / "pyproject.toml").read_text(encoding="utf-8"))
    project = described["project"]
    recipe = yaml.safe_load((_root() / "docs/deploy/conda/recipe.yaml").read_text("utf-8"))
    assert recipe["context"]["version"] == project["version"]
    assert f">={recipe['context']['python_min']}" == project["requires-python"]
    # conda has no extras, and the same packages for all versions of Python.
    runs = [*project["dependencies"], *project["optional-dependencies"]["store"]]
    assert [*map(_requirement, recipe["requirements"]["run"][2:])] == sorted(
        map(_requirement, runs)
    )
    builds = described["build-system"]["requires"]
    assert [*map(_requirement, recipe["requirements"]["host"][2:])] == [*map(_requirement, builds)]


def _requirement(text: str) -> tuple[str, list[str]]:
    """The name on PyPI and the limits of a requirement of pip or conda."""
    read = Requirement(text)
    return read.name.removeprefix("python-"), sorted(map(str, read.specifier))


@pytest.mark.skipif(shutil.which("shasum") is None, reason="Perl's shasum is not installed")
def test_the_homebrew_formula_has_the_checksum_of_its_release(tmp_path: Path) -> None:
    release = tmp_path / "epochzero-0.1.0.tar.gz"
    release.write_bytes(b"a release")
    ran = subprocess.run(
        [_root() / "docs/deploy/homebrew/fill.sh", release, "https://forge.example/e.tar.gz"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert '  url "https://forge.example/e.tar.gz"\n' in ran.stdout
    assert f'  sha256 "{hashlib.sha256(b"a release").hexdigest()}"\n' in ran.stdout
    assert "@" not in ran.stdout.replace("python@3.13", "")


def test_every_extra_that_a_page_or_file_names_exists() -> None:
    described = tomllib.loads((_root() / "pyproject.toml").read_text(encoding="utf-8"))
    extras = described["project"]["optional-dependencies"]
    files = [
        *(_root() / "docs").glob("*.md"),
        *(_root() / "docs/deploy").rglob("*.*"),
        _root() / "README.md",
    ]
    files += [_root() / "docs/deploy/Dockerfile", *(_root() / "src").rglob("*.py")]
    named = {
        extra
        for file in files
        if file.suffix not in (".json", ".pyc")
        for group in re.findall(r"(?:epochzero|'\.)\[([a-z,]+)\]'", file.read_text("utf-8"))
        for extra in group.split(",")
    }
    assert len(named) > 10
    assert named <= {*extras}


def test_a_check_that_only_reads_loads_nothing_of_the_dry_runs_memory() -> None:
    code = "import epochzero.cli.check, sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "epochzero.check.dryrun.model" in loaded
    assert not {"epochzero.check.dryrun.memory.trace", "epochzero.check.dryrun.records"} & loaded


def _metadata_hook() -> ModuleType:
    path = Path(__file__).resolve().parent.parent / "hatch_metadata.py"
    spec = spec_from_file_location("hatch_metadata", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_of_the_readme_lead_to_the_repository_that_releases() -> None:
    links = pytest.importorskip("hatchling") and _metadata_hook().with_absolute_links
    text = "[a](docs/a.md#b), [c](https://x.org), [d](#e)"
    assert links(text, "https://forge.example/p", "v1.0") == (
        "[a](https://forge.example/p/blob/v1.0/docs/a.md#b), [c](https://x.org), [d](#e)"
    )
    assert links(text, "", "v1.0") == "a, [c](https://x.org), [d](#e)"
