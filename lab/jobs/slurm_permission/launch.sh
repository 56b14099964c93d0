#!/bin/sh
# the project's folder belongs to another group: read only for this job
mkdir -m 555 checkpoints
export MASTER_PORT=29646
exec python srun.py 2 python train.py
