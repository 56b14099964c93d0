"""Jobs of a batch system, checked without a target on the machine that submits them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from epochzero.check import CheckResult, check

SCRIPT = "import no_such_library\nimport torch\n\nprint(torch.zeros(2).cuda())\n"
BATCH = "#!/bin/bash\n#SBATCH --gres=gpu:4\nsrun {} train.py\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job with its batch file, and a batch system's command."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "job.sh").write_text(BATCH.format(sys.executable))
    command = tmp_path / "bin" / "sbatch"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    # The machine that runs the tests may have Slurm.
    system = tmp_path / "system"
    system.mkdir()
    for name in ("bash", "env", "python3", "sh"):
        (system / name).symlink_to(f"/usr/bin/{name}")
    return tmp_path


def checked(folder: Path, *words: str, **environment: str) -> CheckResult:
    known: Mapping[str, str] = {"PATH": str(folder / "system"), **environment}
    return check(words or ["sbatch", "job.sh"], folder=folder, environment=known)


def rules(found: CheckResult) -> set[str]:
    return {one.rule for one in found.findings}


def test_nodes_share_the_environment_of_the_machine_that_submits_and_not_its_gpus(
    folder: Path,
) -> None:
    found = checked(folder, PATH=f"{folder / 'bin'}:{folder / 'system'}")
    assert "module-missing" in rules(found)
    assert "program-missing" not in rules(found)
    assert any("sbatch runs the job on other machines" in one.reason for one in found.unknowns)


def test_a_machine_that_cannot_submit_tells_nothing_of_the_packages(folder: Path) -> None:
    found = checked(folder)
    assert not found.findings
    assert any(one.what == "which packages the job finds" for one in found.unknowns)


def test_the_python_of_the_system_is_each_machines_own(folder: Path) -> None:
    (folder / "job.sh").write_text(BATCH.format("/usr/bin/python3"))
    found = checked(folder, PATH=f"{folder / 'bin'}:{folder / 'system'}")
    assert not found.findings


def test_within_an_allocation_this_is_one_of_the_nodes(folder: Path) -> None:
    found = checked(folder, "srun", sys.executable, "train.py", SLURM_JOB_ID="7")
    assert {"module-missing", "program-missing"} <= rules(found)
