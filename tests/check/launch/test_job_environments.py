"""Which Python of this machine a command would be run by."""

from __future__ import annotations

import venv
from pathlib import Path

import pytest

from epochzero.check import check
from epochzero.check.launch import read_job

METADATA = "Metadata-Version: 2.1\nName: {0}\nVersion: 1.0\n"


def program(path: Path, text: str = "") -> Path:
    """A file that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job with Pythons of every kind around it."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job/train.py").write_text("print(1)\n")
    for name in ("usr/bin/python", "usr/bin/python3", "job/.venv/bin/python", "env/bin/python",
                 "conda/bin/python", "conda/envs/fit/bin/python", "elsewhere/fit2/bin/python",
                 "pyenv/versions/3.11.7/bin/python", "job/.pixi/envs/default/bin/python"):  # fmt: skip
        program(tmp_path / name)
    program(tmp_path / "conda/bin/conda")
    (tmp_path / "conda/conda-meta").mkdir()
    program(tmp_path / "pyenv/shims/python", "#!/usr/bin/env bash\n")
    (tmp_path / "pyenv/version").write_text("3.11.7\n")
    program(tmp_path / "usr/bin/torchrun", f"#!{tmp_path}/usr/bin/python3\n")
    program(tmp_path / "env/bin/torchrun", f"#!/bin/sh\n'''exec' {tmp_path}/x y\n")
    (tmp_path / ".conda").mkdir()
    (tmp_path / ".conda/environments.txt").write_text(f"{tmp_path}/elsewhere/fit2\n")
    return tmp_path


def found(folder: Path, script: str, **more: str) -> list[str | None]:
    """The interpreters of the jobs of a script, relative to the folder around it."""
    (folder / "job/run.sh").write_text(script.replace("ROOT", str(folder)))
    environment = {"PATH": f"{folder}/usr/bin", "HOME": str(folder), **more}
    jobs = read_job(["bash", "run.sh"], folder / "job", environment).jobs
    return [
        job.interpreter.relative_to(folder).as_posix() if job.interpreter else None for job in jobs
    ]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("python train.py", "usr/bin/python"),
        (".venv/bin/python train.py", "job/.venv/bin/python"),
        ("ROOT/env/bin/python train.py", "env/bin/python"),
        ("source .venv/bin/activate\npython train.py", "job/.venv/bin/python"),
        (". ROOT/env/bin/activate\nsrun python train.py", "env/bin/python"),
        (". ROOT/env/bin/activate\npython3 train.py", "usr/bin/python3"),
        (". ROOT/env/bin/activate\ndeactivate\npython train.py", "usr/bin/python"),
        ("export PATH=ROOT/env/bin:$PATH\npython train.py", "env/bin/python"),
        ("PATH=ROOT/env/bin:$PATH python train.py", "env/bin/python"),
        ("torchrun train.py", "usr/bin/python3"),
        ("ROOT/env/bin/torchrun train.py", "env/bin/python"),
        ("python -m torch.distributed.run train.py", "usr/bin/python"),
        ("uv run train.py", "job/.venv/bin/python"),
        ("uv run python train.py", "job/.venv/bin/python"),
        ("poetry run python train.py", "job/.venv/bin/python"),
        ("export PATH=ROOT/conda/bin:$PATH\nconda run -n fit python train.py",
         "conda/envs/fit/bin/python"),
        ("export PATH=ROOT/conda/bin:$PATH\nconda activate\npython train.py", "conda/bin/python"),
        ("conda activate fit\npython train.py", "conda/envs/fit/bin/python"),
        ("source ROOT/conda/bin/activate fit\npython train.py", "conda/envs/fit/bin/python"),
        ("conda activate fit2\npython train.py", "elsewhere/fit2/bin/python"),
        ("conda run -p ROOT/env python train.py", "env/bin/python"),
        ("export PATH=ROOT/pyenv/shims\npython train.py", "pyenv/versions/3.11.7/bin/python"),
        ("module load cuda/12.1\npython train.py", "usr/bin/python"),
        # Where it cannot be told nothing is assumed.
        ("module load python/3.10\npython train.py", None),
        ("ml pytorch\npython train.py", None),
        ("conda activate nowhere\npython train.py", None),
        ("conda activate $(cat name)\npython train.py", None),
        ("if [ -d x ]; then source .venv/bin/activate; fi\npython train.py", None),
        ("source nowhere/bin/activate\npython train.py", None),
        ("export PATH=$X/bin\npython train.py", None),
        ("python3.12 train.py", None),
        ("docker run image python train.py", None),
    ],
)  # fmt: skip
def test_the_interpreter_of_a_command(folder: Path, script: str, expected: str | None) -> None:
    known = {"CONDA_EXE": f"{folder}/conda/bin/conda"} if "conda" in script else {}
    assert found(folder, script, **known) == [expected]


def test_each_job_has_its_own(folder: Path) -> None:
    script = "source .venv/bin/activate\npython train.py\ndeactivate\npython train.py"
    assert found(folder, script) == ["job/.venv/bin/python", "usr/bin/python"]


def test_modules_are_those_of_the_environment_that_runs_the_job(tmp_path: Path) -> None:
    for name in ("one", "other"):
        venv.create(tmp_path / name, with_pip=False)
        (site,) = (tmp_path / name).glob("lib/python*/site-packages")
        (site / f"of_{name}.py").write_text("")
        (site / f"of_{name}-1.0.dist-info").mkdir()
        (site / f"of_{name}-1.0.dist-info/METADATA").write_text(METADATA.format(f"of_{name}"))
        (site / f"of_{name}-1.0.dist-info/RECORD").write_text(f"of_{name}.py,,\n")
    (tmp_path / "train.py").write_text("import of_one\n")
    (tmp_path / "fit.py").write_text("import of_one\n")
    script = "set -e\none/bin/python train.py\nsource other/bin/activate\npython fit.py\n"
    (tmp_path / "run.sh").write_text(script)
    checked = check(
        ["bash", "run.sh"], folder=tmp_path, select=["module-missing"], environment={"PATH": "/bin"}
    )
    (finding,) = checked.findings
    assert (finding.place.path, "of_one" in finding.message) == ("fit.py", True)


def test_an_environment_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    for script, expected in (
        ("set -e\nsource env/bin/activate\n", "error"),
        ("source env/bin/activate\n", "warning"),
        ("set -e\npython -m venv env\nsource env/bin/activate\n", None),
        ("set -e\n[ -d env ] && source env/bin/activate\n", "warning"),
    ):
        (tmp_path / "run.sh").write_text(script + "python train.py\n")
        checked = check(
            ["bash", "run.sh"], folder=tmp_path, select=["environment-missing"], environment={}
        )
        assert [one.severity for one in checked.findings] == ([expected] if expected else [])


def test_of_a_python_that_is_not_known_no_package_is_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import nowhere_at_all\n")
    (tmp_path / "run.sh").write_text("module load python/3.10\npython train.py\n")
    for command in (["bash", "run.sh"], ["docker", "run", "-v", ".:/w", "-w", "/w", "image",
                                         "python", "train.py"]):  # fmt: skip
        checked = check(command, folder=tmp_path, environment={"PATH": "/bin"})
        assert "module-missing" not in {one.rule for one in checked.findings}
        assert "which packages the job finds" in {one.what for one in checked.unknowns}
