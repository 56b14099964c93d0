"""What the environment of a process says of its launch: who started it, its rank, its job.

Which variables a launcher or scheduler sets is in its file (`epochzero.launchers`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from epochzero.launchers import ProcessVariables, allocation_variables, process_variables
from epochzero.run.records.identity import (
    ATTEMPT_VARIABLE,
    JOB_VARIABLE,
    PROGRESS_FILE,
    PROGRESS_VARIABLE,
    derived_job,
    is_job,
    new_job,
)

ELASTIC_FOLDER = "elastic"
"""Where in an attempt's folder torchelastic's error files are."""
ERROR_VARIABLE = "TORCHELASTIC_ERROR_FILE"


_ELASTIC_LOGS = "PET_LOG_DIR"
_ELASTIC_RUN = "epochzero.torchelastic_run"
_RAY_SUBMISSION = "RAY_SUBMISSION_ID"
_ERROR_FILE = "error.json"


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
    known = (variable for variable in process_variables() if environment.get(variable.known_by))
    launcher = next(known, ProcessVariables("", "", 0))
    given = environment.get(JOB_VARIABLE, "")
    numbers = [environment.get(variable, "") for variable in launcher.job]
    if given:  # SkyPilot's identities are longer than a name of a directory may be.
        job = given if is_job(given) else derived_job(given)
    elif any(numbers):
        job = derived_job(launcher.system, name, *numbers)
    else:
        job = new_job()
    restarts = _number(environment, launcher.restarts) or 0
    return Launch(
        launcher=launcher.system,
        rank=_number(environment, launcher.rank),
        world_size=_number(environment, launcher.world_size),
        job=job,
        attempt=_number(environment, ATTEMPT_VARIABLE) or restarts + 1,
        scheduler={
            variable: value[:_MOST_SCHEDULER_TEXT]
            for variable, value in sorted(allocation_variables(environment).items())
        },
    )


def gpus_of(environment: Mapping[str, str]) -> int:
    """How many GPUs the job holds in all, as far as this node knows; 0 where there is none."""
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

    torchelastic is configured to leave the error files of its workers in the attempt's folder, unless the
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
    """What launchers report within other variables.

    Ray gives a submitted job's identity in its configuration, next to what may be secret. torchrun's
    run is called none by default; on one node its folder of error files tells it from the next one.
    """
    derived = {}
    with suppress(ValueError, KeyError, TypeError):
        metadata = json.loads(environment["RAY_JOB_CONFIG_JSON_ENV_VAR"])["metadata"]
        derived[_RAY_SUBMISSION] = str(metadata["job_submission_id"])
    error_file = PurePath(environment.get("TORCHELASTIC_ERROR_FILE", ""))
    one_node = environment.get("LOCAL_WORLD_SIZE") == environment.get("WORLD_SIZE")
    if one_node and len(error_file.parents) > _ELASTIC_DEPTH:
        derived[_ELASTIC_RUN] = str(error_file.parents[_ELASTIC_DEPTH - 1])
    return derived


def _number(environment: Mapping[str, str], variable: str) -> int | None:
    text = environment.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() else None
