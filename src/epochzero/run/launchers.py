"""What a launcher or scheduler tells a process in variables: who started it, its rank, its job.

A catalogue: each row says by which variable a launcher is known, and which of its variables hold what.
Sources: the manuals of srun(1) and sbatch(1), torchrun, Open MPI's and MPICH's mpirun, PBS qsub(1B),
LSF, Flux, the Kubernetes Job controller, Ray.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from epochzero.run.identity import ATTEMPT_VARIABLE, JOB_VARIABLE, derived_job, is_job, new_job
from epochzero.run.progress_reports import PROGRESS_FILE, PROGRESS_VARIABLE

ELASTIC_FOLDER = "elastic"
"""Where in an attempt's folder torchelastic's error files are."""
ERROR_VARIABLE = "TORCHELASTIC_ERROR_FILE"


_ELASTIC_LOGS = "PET_LOG_DIR"
_ELASTIC_RUN = "epochzero.torchelastic_run"
_RAY_SUBMISSION = "RAY_SUBMISSION_ID"
_ERROR_FILE = "error.json"


@dataclass(frozen=True, slots=True)
class _Launcher:
    """How a launcher is known.

    Attributes:
        name: as in `Started.launcher`.
        known_by: a variable that only it sets for what it starts.
        rank, world_size: variables.
        job: those that make one job's number together, the same for all its ranks.
        restarts: how often it has started the job again by itself.
    """

    name: str
    known_by: str
    rank: str = ""
    world_size: str = ""
    job: tuple[str, ...] = ()
    restarts: str = ""


# Ordered: what starts ranks stands before what starts launchers.
_LAUNCHERS = (
    _Launcher(
        "torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE",
        ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", _ELASTIC_RUN),
        "TORCHELASTIC_RESTART_COUNT",
    ),
    _Launcher("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE",)),
    _Launcher(
        "slurm", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS",
        ("SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID"), "SLURM_RESTART_COUNT",
    ),
    _Launcher("flux", "FLUX_TASK_RANK", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", ("FLUX_JOB_ID",)),
    _Launcher("mpirun", "PMI_RANK", "PMI_RANK", "PMI_SIZE", ("PMI_ID", "HYDI_CONTROL_FD")),
    _Launcher(
        "slurm", "SLURM_JOB_ID",
        job=("SLURM_CLUSTER_NAME", "SLURM_JOB_ID"), restarts="SLURM_RESTART_COUNT",
    ),
    _Launcher("pbs", "PBS_JOBID", job=("PBS_JOBID",)),
    _Launcher("lsf", "LSB_JOBID", job=("LSB_JOBID", "LSB_JOBINDEX")),
    _Launcher("ray", _RAY_SUBMISSION, job=(_RAY_SUBMISSION,)),
    _Launcher("ray", "RAY_JOB_ID", job=("RAY_JOB_ID",)),
    _Launcher("kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETION_INDEX"),
    _Launcher("kubernetes", "KUBERNETES_SERVICE_HOST", "RANK", "WORLD_SIZE"),
)  # fmt: skip
_SCHEDULERS = (
    "SLURM_",
    "PBS_",
    "LSB_",
    "FLUX_",
    "KUBERNETES_SERVICE_HOST",
    "RAY_JOB_ID",
    _RAY_SUBMISSION,
)
_MOST_SCHEDULER_TEXT = 1000
_ELASTIC_DEPTH = 3
"""Error files are LOGS/RUN/attempt_0/RANK/error.json."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Who started this process, and as what.

    Attributes:
        launcher: name; empty when none is known.
        rank, world_size: None when it tells none.
        job: identity of the job.
        attempt: the first that this process may be.
        scheduler: the variables of the scheduler.
    """

    launcher: str
    rank: int | None
    world_size: int | None
    job: str
    attempt: int = 1
    scheduler: Mapping[str, str] = field(default_factory=dict)


def launch_of(environment: Mapping[str, str], name: str) -> Launch:
    """Reads the variables.

    Args:
        environment: of this process.
        name: of the job. Two jobs of one batch script differ by it.
    """
    environment = {**environment, **_derived(environment)}
    known = (launcher for launcher in _LAUNCHERS if environment.get(launcher.known_by))
    launcher = next(known, _Launcher("", ""))
    given = environment.get(JOB_VARIABLE, "")
    numbers = [environment.get(variable, "") for variable in launcher.job]
    if is_job(given):
        job = given
    elif any(numbers):
        job = derived_job(launcher.name, name, *numbers)
    else:
        job = new_job()
    restarts = _number(environment, launcher.restarts) or 0
    return Launch(
        launcher=launcher.name,
        rank=_number(environment, launcher.rank),
        world_size=_number(environment, launcher.world_size),
        job=job,
        attempt=_number(environment, ATTEMPT_VARIABLE) or restarts + 1,
        scheduler={
            variable: value[:_MOST_SCHEDULER_TEXT]
            for variable, value in sorted(environment.items())
            if variable.startswith(_SCHEDULERS)
        },
    )


def gpus_of(environment: Mapping[str, str]) -> int:
    """How many GPUs the job holds in all, as far as this node can tell; 0 where there is none."""
    nodes = _number(environment, "SLURM_NNODES") or 1
    if (all_of_job := _number(environment, "SLURM_GPUS")) is not None:
        return all_of_job
    if (of_node := _number(environment, "SLURM_GPUS_ON_NODE")) is not None:
        return of_node * nodes
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        named = [part.strip() for part in visible.split(",") if part.strip()]
        # What stands behind an index that is no GPU is not visible.
        return (named.index("-1") if "-1" in named else len(named)) * nodes
    return sum(1 for _ in Path("/proc/driver/nvidia/gpus").glob("*")) * nodes


def job_environment(
    environment: Mapping[str, str], *, job: str, attempt: int, folder: Path | None
) -> dict[str, str]:
    """The environment of the job: ours, with what it is to know of its attempt.

    torchelastic is told to leave the error files of its workers in the attempt's folder, unless the
    user has chosen one; there what it records of a process without a launcher goes too.
    """
    added = {JOB_VARIABLE: job, ATTEMPT_VARIABLE: str(attempt)}
    if folder is not None:
        added[_ELASTIC_LOGS] = environment.get(_ELASTIC_LOGS) or str(folder / ELASTIC_FOLDER)
        error = environment.get(ERROR_VARIABLE) or str(folder / ELASTIC_FOLDER / _ERROR_FILE)
        added[ERROR_VARIABLE] = error
        added[PROGRESS_VARIABLE] = str(folder / PROGRESS_FILE)
    return {**environment, **added}


def _derived(environment: Mapping[str, str]) -> dict[str, str]:
    """What launchers tell within other variables.

    Ray gives a submitted job's identity in its configuration, beside what may be secret. torchrun's
    run is called none by default; on one node its folder of error files tells it from the next one.
    """
    derived = {}
    with suppress(ValueError, KeyError, TypeError):
        told = json.loads(environment["RAY_JOB_CONFIG_JSON_ENV_VAR"])["metadata"]
        derived[_RAY_SUBMISSION] = str(told["job_submission_id"])
    error_file = PurePath(environment.get("TORCHELASTIC_ERROR_FILE", ""))
    one_node = environment.get("LOCAL_WORLD_SIZE") == environment.get("WORLD_SIZE")
    if one_node and len(error_file.parents) > _ELASTIC_DEPTH:
        derived[_ELASTIC_RUN] = str(error_file.parents[_ELASTIC_DEPTH - 1])
    return derived


def _number(environment: Mapping[str, str], variable: str) -> int | None:
    text = environment.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() else None
