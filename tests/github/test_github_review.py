"""The jobs of a pull request: which they are, and what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.errors import InputError
from epochzero.github import review

WRONG = 'print("%d of %d" % (1,))\n'
GUARD = "if __name__ == '__main__':\n    "


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "train.py": f"import helper\n\n{GUARD}helper.run()\n",
        "helper.py": f"def run():\n    {WRONG}",
        "jobs/train.sh": "#!/bin/bash\nset -e\npython train.py\n",
        "tools/clean.sh": "#!/bin/bash\nrm -rf outputs\n",
        "tests/test_train.py": f"{GUARD}{WRONG}",
    }
    for name, text in files.items():
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "checkout"


def test_launch_scripts_that_are_changed_are_the_jobs(project: Path) -> None:
    changed = ["jobs/train.sh", "tools/clean.sh", "README.md", "gone.sh", "tests/test_train.py"]
    found = review(project, changed)
    assert found.jobs == ("jobs/train.sh",)
    (finding,) = found.findings
    assert (finding.rule, finding.place.path, found.errors) == ("format-arguments", "helper.py", 1)
    assert not found.not_checked


def test_a_changed_program_is_one_unless_a_script_starts_it(project: Path) -> None:
    assert review(project, ["train.py"]).jobs == ("python train.py",)
    assert review(project, ["train.py", "jobs/train.sh"]).jobs == ("jobs/train.sh",)
    assert review(project, ["helper.py"]).jobs == ()


def test_what_only_the_command_line_would_say_is_not_asked_of_a_program(project: Path) -> None:
    parser = "import argparse\n\np = argparse.ArgumentParser()\np.add_argument('--data', required=True)\n"
    (project / "train.py").write_text(f"{parser}\n{GUARD}p.parse_args()\n")
    assert review(project, ["train.py"]).findings == ()
    (finding,) = review(project, ["train.py"], jobs=["python train.py"]).findings
    assert finding.rule == "argument-missing"


def test_jobs_are_named_by_the_settings_and_by_the_caller(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.epochzero.github]\njobs = ["python train.py --epochs 3"]\n'
    )
    assert review(project, []).jobs == ("python train.py --epochs 3",)
    assert review(project, [], jobs=["bash jobs/train.sh"]).jobs == ("bash jobs/train.sh",)
    found = review(project, [], jobs=["python absent.py", "python train.py"])
    assert found.jobs == ("python train.py",)
    (refused,) = found.not_checked
    assert (refused.job, found.clear) == ("python absent.py", False)


@pytest.mark.parametrize("settings", ["job = []", "jobs = 'python train.py'", "jobs = ['\"']"])
def test_settings_that_cannot_be_used_are_told(project: Path, settings: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.epochzero.github]\n{settings}\n")
    with pytest.raises(InputError):
        review(project, [])


def test_nothing_is_assumed_of_the_platform(project: Path) -> None:
    (project / "train.py").write_text("import torch\n\ntorch.zeros(1)\n")
    assert review(project, [], jobs=["python train.py"]).findings == ()


def test_findings_in_changed_files_come_first_and_each_comes_once(project: Path) -> None:
    (project / "a.py").write_text(WRONG)
    (project / "b.py").write_text("import a\nimport helper\n\nhelper.run()\n")
    found = review(project, ["helper.py"], jobs=["python b.py", "python train.py"])
    assert [finding.place.path for finding in found.findings] == ["helper.py", "a.py"]


def test_lines_of_files_outside_of_the_checkout_are_not_told(project: Path) -> None:
    secret = project.parent / "secret.py"
    secret.write_text(WRONG)
    (project / "linked.py").symlink_to(secret)
    assert review(project, ["linked.py"]).jobs == ()
    found = review(project, ["linked.py"], jobs=["python linked.py", f"python {secret}"])
    assert (found.jobs, found.findings) == ((), ())
    assert all("outside the allowed directories" in one.reason for one in found.not_checked)
    assert len(found.not_checked) == 2


def test_a_path_that_leads_outside_is_no_job(project: Path) -> None:
    (project.parent / "out.sh").write_text("python train.py\n")
    (project / "loop.sh").symlink_to("loop.sh")
    changed = ["../out.sh", str(project.parent / "out.sh"), "loop.sh", "a\0b.sh", "-c.sh"]
    assert review(project, changed).jobs == ()
