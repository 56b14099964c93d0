"""What launchers and schedulers tell in variables; ranks agree on their job without talking."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from epochzero.run.records.identity import is_job, name_of, new_job
from epochzero.run.records.launch import gpus_of, job_environment, launch_of

STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2"}


def test_without_a_launcher_each_job_is_new_and_later_ones_sort_behind() -> None:
    launch = launch_of({}, "train.py")
    assert (launch.launcher, launch.rank, launch.world_size, launch.attempt) == ("", None, None, 1)
    assert len(launch.job) == 14
    assert is_job(launch.job)
    earlier = new_job()
    assert earlier[:8] == f"{int(time.time()):08x}" or earlier < new_job()
    assert len({new_job() for _ in range(100)}) > 90


def test_ranks_of_a_step_are_of_one_job_and_steps_are_not() -> None:
    ranks = [launch_of(STEP | {"SLURM_PROCID": str(rank)}, "a.py") for rank in (0, 1)]
    assert [launch.rank for launch in ranks] == [0, 1]
    assert ranks[0].job == ranks[1].job
    assert ranks[0].world_size == 2
    assert ranks[0].scheduler == STEP | {"SLURM_PROCID": "0"}
    other = launch_of(STEP | {"SLURM_STEP_ID": "1"}, "a.py")
    assert other.job != ranks[0].job


@pytest.mark.parametrize(
    ("variables", "launcher", "rank"),
    [
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, "mpirun", 3),
        ({"TORCHELASTIC_RUN_ID": "none", "RANK": "2", "WORLD_SIZE": "4"}, "torchrun", 2),
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0"}, "slurm", None),
        ({"PBS_JOBID": "7.server"}, "pbs", None),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "5"}, "kubernetes", 5),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "RANK": "1"}, "kubernetes", 1),
        ({"OMPI_COMM_WORLD_RANK": "x"}, "mpirun", None),
    ],
)
def test_launchers_are_known_by_their_variables(
    variables: dict[str, str], launcher: str, rank: int | None
) -> None:
    launch = launch_of(variables, "a.py")
    assert (launch.launcher, launch.rank) == (launcher, rank)


def test_a_login_node_is_no_allocation() -> None:
    assert (
        launch_of({"SLURM_CONF": "/etc/slurm/slurm.conf", "SGE_ROOT": "/opt/sge"}, "a.py").scheduler
        == {}
    )
    inside = {"SGE_ROOT": "/opt/sge", "SGE_O_WORKDIR": "/home/ann"}
    assert launch_of(inside, "a.py").scheduler == inside


def test_a_given_job_is_kept_or_replaced_by_a_name_for_a_folder() -> None:
    assert launch_of({"EPOCHZERO_JOB": "mine"} | STEP, "a.py").job == "mine"
    first, restarted, other = (
        launch_of({"EPOCHZERO_JOB": job}, "a.py").job for job in ("../up", "../up", "s" * 65)
    )
    assert is_job(first)
    assert is_job(other)
    assert first == restarted != other


def test_a_requeued_job_is_another_attempt_of_the_same() -> None:
    first, second = (launch_of(STEP | more, "a.py") for more in ({}, {"SLURM_RESTART_COUNT": "1"}))
    assert first.job == second.job
    assert (first.attempt, second.attempt) == (1, 2)


def _elastic(run: str, attempt: int = 0, **variables: str) -> dict[str, str]:
    return {
        "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
        "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "TORCHELASTIC_ERROR_FILE": f"/tmp/elastic/{run}/attempt_{attempt}/1/error.json",
    } | variables  # fmt: skip


def test_runs_of_torchrun_on_one_node_are_told_apart_and_its_restarts_are_not() -> None:
    first, restarted, next_run = (
        launch_of(_elastic(*run), "a.py") for run in (("none_a", 0), ("none_a", 1), ("none_b", 0))
    )
    assert first.job == restarted.job != next_run.job
    assert (first.attempt, restarted.attempt) == (1, 2)


def test_nodes_of_one_torchrun_agree() -> None:
    nodes = [launch_of(_elastic(run, WORLD_SIZE="4"), "a.py") for run in ("none_a", "none_b")]
    assert nodes[0].job == nodes[1].job
    other = launch_of(_elastic("none_a", WORLD_SIZE="4", SLURM_JOB_ID="8"), "a.py")
    assert other.job != nodes[0].job


def test_a_job_submitted_to_ray_is_known_by_its_submission_alone() -> None:
    told = '{"runtime_env": {"env_vars": {"KEY": "s3cret"}}, "metadata": {"job_submission_id": "raysubmit_1"}}'
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    launch = launch_of({"RAY_JOB_CONFIG_JSON_ENV_VAR": told} | pod, "a.py")
    assert launch.launcher == "ray"
    assert launch.scheduler == {"RAY_SUBMISSION_ID": "raysubmit_1"} | pod
    assert launch.job == launch_of({"RAY_JOB_CONFIG_JSON_ENV_VAR": told}, "a.py").job
    for broken in ("", "{", "[]", '{"metadata": null}'):
        assert launch_of({"RAY_JOB_CONFIG_JSON_ENV_VAR": broken}, "a.py").launcher == ""


@pytest.mark.parametrize(
    ("variables", "gpus"),
    [
        ({"SLURM_GPUS": "16", "SLURM_NNODES": "2"}, 16),
        ({"SLURM_GPUS_ON_NODE": "8", "SLURM_NNODES": "2"}, 16),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2"}, 3),
        ({"CUDA_VISIBLE_DEVICES": "0,-1,2"}, 1),
        ({"CUDA_VISIBLE_DEVICES": ""}, 0),
        ({"CUDA_VISIBLE_DEVICES": "GPU-1a,GPU-2b"}, 2),
    ],
)
def test_gpus_are_counted_as_the_scheduler_tells(variables: dict[str, str], gpus: int) -> None:
    assert gpus_of(variables) == gpus


def test_error_files_of_torchelastic_stay_in_the_attempt() -> None:
    def logs(environment: dict[str, str]) -> str:
        return job_environment(environment, job="j", attempt=1, folder=Path("/a"))["PET_LOG_DIR"]

    assert logs({}) == "/a/elastic"
    assert logs({"PET_LOG_DIR": "/mine"}) == "/mine"


def test_a_job_is_told_where_its_error_and_its_progress_go() -> None:
    told = job_environment({}, job="j", attempt=1, folder=Path("/a"))
    assert told["TORCHELASTIC_ERROR_FILE"] == "/a/elastic/error.json"
    assert told["EPOCHZERO_PROGRESS"] == "/a/progress.jsonl"
    under_torchrun = {"TORCHELASTIC_ERROR_FILE": "/tmp/1/error.json"}
    told = job_environment(under_torchrun, job="j", attempt=1, folder=Path("/a"))
    assert told["TORCHELASTIC_ERROR_FILE"] == "/tmp/1/error.json"
    assert "EPOCHZERO_PROGRESS" not in job_environment({}, job="j", attempt=1, folder=None)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "-u", "src/train.py", "--x"), "train.py"),
        (("torchrun", "--nproc_per_node", "2", "t.py"), "t.py"),
        (("/usr/bin/env",), "env"),
        (("python", "-u", "-m", "submitit.core._submit", "/logs"), "submitit.core._submit"),
        (("python", "-m", "torch.distributed.run", "train.py"), "train.py"),
    ],
)
def test_a_job_is_called_after_its_script(command: tuple[str, ...], name: str) -> None:
    assert name_of(command) == name


def test_a_process_of_flux_knows_its_rank() -> None:
    launch = launch_of({"FLUX_TASK_RANK": "3", "FLUX_JOB_SIZE": "4", "FLUX_JOB_ID": "f1"}, "a.py")
    assert (launch.launcher, launch.rank, launch.world_size) == ("flux", 3, 4)
