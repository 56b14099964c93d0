"""The lines of `docs/integrations.md` for launchers, with the real libraries and a job that fails.

No development environment needs the libraries: in one of its own, install `accelerate submitit torchx
hydra-submitit-launcher ray[train] kubeflow determined`, and SkyPilot in another.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest
import yaml

from epochzero.diagnose import diagnose

DOCS = Path(__file__).parents[2] / "docs"
RETRY = (DOCS / "retry.md").read_text(encoding="utf-8")
INTEGRATIONS = (DOCS / "integrations.md").read_text(encoding="utf-8")
MANIFESTS = [
    yaml.safe_load(text) for text in re.findall(r"(?ms)^```yaml\n(.*?)^```$", RETRY)
]  # of the guide to retries
FAILS = "def train(rate=0.1):\n    return {'rate': rate}['fox']\n"
PROGRAM = f"{FAILS}\nif __name__ == '__main__':\n    train()\n"
EPOCHZERO = [sys.executable, "-m", "epochzero", "run", "--", sys.executable]


def _start(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    home = {"EPOCHZERO_HOME": str(folder / "home"), "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **home}, capture_output=True, text=True, check=False
    )


def test_accelerate(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="its launcher is started")
    (tmp_path / "train.py").write_text(PROGRAM)
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1", "train.py"]
    done = _start(tmp_path, *EPOCHZERO, *launch)
    assert done.returncode == 1
    assert "train.py:2 in train" in done.stderr


@pytest.mark.parametrize("how", ["function", "command"])
def test_submitit(tmp_path: Path, how: str) -> None:
    pytest.importorskip("submitit", reason="its local executor starts the job")
    (tmp_path / "train.py").write_text(PROGRAM)
    python = " ".join(EPOCHZERO)
    submitted = {
        "function": "train.train",
        "command": f"submitit.helpers.CommandFunction({[*EPOCHZERO, 'train.py']})",
    }
    (tmp_path / "submit.py").write_text(
        "import submitit, train\n"
        f"given = {python!r} if {how == 'function'} else None\n"
        "executor = submitit.AutoExecutor(folder='logs', cluster='local', local_python=given)\n"
        f"print(executor.submit({submitted[how]}).exception())\n"
    )
    done = _start(tmp_path, sys.executable, "submit.py")
    assert "fox" in done.stdout, done.stderr
    found = diagnose(tmp_path / "logs")
    assert found.user_frame is not None
    assert (Path(found.user_frame.file).name, found.user_frame.line) == ("train.py", 2)
    assert "train.py:2 in train" in "".join(
        f.read_text() for f in (tmp_path / "logs").iterdir() if f.suffix != ".pkl"
    )


def test_torchx(tmp_path: Path) -> None:
    pytest.importorskip("torchx", reason="its local scheduler starts the job")
    (tmp_path / "train.py").write_text(PROGRAM)
    start = "import sys; sys.argv[0] = 'torchx'; from torchx.cli.main import main; main()"
    command = ["run", "--scheduler", "local_cwd", "--wait", "utils.sh", *EPOCHZERO, "train.py"]
    done = _start(tmp_path, sys.executable, "-c", start, *command)
    assert "train.py:2 in train" in done.stdout + done.stderr


def test_hydra_with_submitit(tmp_path: Path) -> None:
    """Hydra drops the stack of the job's error: only its message is left."""
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="it starts the jobs")
    main = "@hydra.main(version_base=None)\ndef main(config):\n    train(config.rate)\n\nmain()\n"
    (tmp_path / "train.py").write_text(f"import hydra\n{FAILS}\n{main}")
    sweep = ["train.py", "--multirun", "hydra/launcher=submitit_local", "+rate=1"]
    done = _start(tmp_path, *EPOCHZERO, *sweep)
    assert done.returncode == 1
    assert "FAILED  Key Not Found" in done.stderr


def test_ray_train(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="ray[train] needs it")
    pytest.importorskip("ray.train.torch", reason="its trainer starts the worker")
    trainer = (
        "TorchTrainer(train, train_loop_config={}, scaling_config=ScalingConfig(num_workers=1))"
    )
    start = f"from ray.train import ScalingConfig\nfrom ray.train.torch import TorchTrainer\n{trainer}.fit()\n"
    (tmp_path / "train.py").write_text(
        f"{FAILS}\nif __name__ == '__main__':\n" + indent(start, "    ")
    )
    done = _start(tmp_path, *EPOCHZERO, "train.py")
    assert done.returncode == 1
    assert "FAILED  Key Not Found" in done.stderr
    assert "train.py:2 in train" in done.stderr


def test_kubeflow(tmp_path: Path) -> None:
    models = pytest.importorskip("kubeflow_trainer_api.models", reason="its objects read the job")
    (manifest,) = (found for found in MANIFESTS if found.get("kind") == "TrainJob")
    job = models.TrainerV1alpha1TrainJob.from_dict(manifest)
    assert job.to_dict() == manifest
    _run_by_a_shell(tmp_path, shlex.join(job.spec.trainer.command))


def test_skypilot(tmp_path: Path) -> None:
    sky = pytest.importorskip("sky", reason="its objects read the task")
    (task,) = (found for found in MANIFESTS if "run" in found)
    read = sky.Task.from_yaml_config(task)
    (resources,) = read.resources
    assert resources.job_recovery["recover_on_exit_codes"] == [75, 76]
    _run_by_a_shell(tmp_path, read.run)


def test_determined(tmp_path: Path) -> None:
    """Its launcher starts two ranks as in a container; what a cluster says about the container is given."""
    pytest.importorskip("determined", reason="its launcher starts the job")
    (tmp_path / "train.py").write_text(PROGRAM)
    (line,) = re.findall(r"\| Determined \| `(.*)` \|", INTEGRATIONS)
    (tmp_path / "start.py").write_text(
        "import shlex, sys\n"
        "import determined\n"
        "from determined._info import ClusterInfo, RendezvousInfo\n"
        "from determined.launch import torch_distributed\n"
        "ranks = RendezvousInfo(container_addrs=['localhost'], container_rank=0, container_slot_counts=[2])\n"
        "names = dict.fromkeys(('cluster_id', 'agent_id', 'task_id', 'session_token'), '')\n"
        f"names |= {{'allocation_id': {tmp_path.name + str(os.getpid())!r}, 'slot_ids': [0, 1], 'task_type': 'TRIAL'}}\n"
        "info = ClusterInfo(master_url='http://localhost:1', rendezvous_info=ranks, **names)\n"
        "determined.get_cluster_info = lambda: info\n"
        f"config = determined.ExperimentConfig({yaml.safe_load(line)})\n"
        "python, option, module, *words = shlex.split(config.get_entrypoint())\n"
        "assert module == torch_distributed.__name__\n"
        "sys.exit(torch_distributed.main(*torch_distributed.parse_args(words)))\n"
    )
    done = _start(tmp_path, "env", f"PATH={_programs(tmp_path)}", sys.executable, "start.py")
    assert done.returncode != 0
    # The launcher terminates the other ranks once one has failed.
    assert re.search(r"\[rank=[01]\] Your code .*train.py:2 in train", done.stdout + done.stderr)


def _programs(folder: Path) -> str:
    """A search path with `epochzero`, `torchrun` and this Python."""
    for name, module in {"epochzero": "epochzero", "torchrun": "torch.distributed.run"}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        (folder / name).chmod(0o755)
    return os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])


def _run_by_a_shell(folder: Path, script: str) -> None:
    """Has bash start a job that fails, as a container or a node of the cloud does; 78 means that a retry does not help."""
    (folder / "train.py").write_text(PROGRAM)
    path = _programs(folder)
    done = _start(folder, "env", f"PATH={path}", "SKYPILOT_TASK_ID=t1", "bash", "-c", script)
    assert done.returncode == 78
    assert "train.py:2 in train" in done.stderr
