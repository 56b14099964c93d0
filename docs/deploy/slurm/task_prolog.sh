#!/bin/bash
# TaskProlog of slurm.conf: runs as the user before each task, and what it prints becomes the task's environment.
# The first srun of a job script is then the wrapper next to `epochzero`, which records and diagnoses its tasks.
# Only for the batch script, which has no number of a step, and not with `EPOCHZERO_WRAP=off sbatch ...`.
[ -z "${SLURM_STEP_ID:-}" ] && [ "${EPOCHZERO_WRAP:-}" != off ] || exit 0
echo "export PATH=/opt/epochzero/slurm:$PATH"
