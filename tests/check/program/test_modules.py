"""Modules are found where Python would look for them, and named as the person knows them."""

from __future__ import annotations

from pathlib import Path

from epochzero.check.launch import read_job
from epochzero.check.program.interpreter import read_program
from epochzero.check.target.model import Target


def paths(folder: Path, command: list[str], files: dict[str, str]) -> set[str]:
    """The files of the modules that a command's program has."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (job,) = read_job(command, folder, {}).jobs
    return {module.path for module in read_program(job, Target("there")).modules.values()}


FILES = {"app/__init__.py": "", "app/train.py": "import app.model\n", "app/model.py": ""}


def test_a_module_sees_the_working_folder(tmp_path: Path) -> None:
    found = paths(tmp_path, ["python", "-m", "app.train"], FILES)
    assert found == {"app/__init__.py", "app/train.py", "app/model.py"}


def test_relative_imports_start_at_the_package_that_is_run(tmp_path: Path) -> None:
    files = {
        "net/__init__.py": "",
        "net/__main__.py": "from .cli import main\n",
        "net/cli.py": "main = 1\n",
    }
    found = paths(tmp_path, ["python", "-m", "net"], files)
    assert found == {"net/__init__.py", "net/__main__.py", "net/cli.py"}


def test_a_script_sees_its_own_folder_only(tmp_path: Path) -> None:
    assert paths(tmp_path, ["python", "app/train.py"], FILES) == {"app/train.py"}


def test_a_script_sees_pythonpath(tmp_path: Path) -> None:
    command = ["env", "PYTHONPATH=.", "python", "app/train.py"]
    assert "app/model.py" in paths(tmp_path, command, FILES)


def test_a_directory_that_is_appended_hides_no_installed_module(tmp_path: Path) -> None:
    files = {
        "train.py": "import sys\nsys.path.append('utils')\nimport logging\nimport tools\n",
        "utils/logging.py": "",
        "utils/tools.py": "",
    }
    assert paths(tmp_path, ["python", "train.py"], files) == {"train.py", "utils/tools.py"}
    first = files | {"train.py": files["train.py"].replace("append('utils')", "insert(0, 'utils')")}
    assert "utils/logging.py" in paths(tmp_path, ["python", "train.py"], first)


def test_paths_begin_where_the_job_is_submitted(tmp_path: Path) -> None:
    files = {
        "run.sh": "cd src\npython train.py\n",
        "src/train.py": "import model\n",
        "src/model.py": "",
    }
    assert paths(tmp_path, ["bash", "run.sh"], files) == {"src/train.py", "src/model.py"}
