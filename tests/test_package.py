"""The public calls, whatever was imported before."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

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


def test_dir_lists_the_public_names() -> None:
    assert dir(epochzero) == sorted(epochzero.__all__)
    assert all(hasattr(epochzero, name) for name in epochzero.__all__)


def test_starting_loads_no_room() -> None:
    code = "import epochzero, sys; print([n for n in sys.modules if n.startswith('epochzero.')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['epochzero.errors', 'epochzero.lazy_exports']"


def test_a_room_of_models_that_shares_its_name_with_a_function_gives_the_function() -> None:
    code = """
import epochzero.models.dissect.validity, epochzero.models
from epochzero.models import dissect, evaluate
assert callable(dissect) and callable(evaluate)
assert epochzero.models.dissect is dissect
assert dir(epochzero.models.mutate)
"""
    subprocess.run([sys.executable, "-c", f"import epochzero.models.mutate\n{code}"], check=True)


def test_mutants_need_no_torch() -> None:
    code = "import epochzero.models.mutate, epochzero.cli.model, sys; print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


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
