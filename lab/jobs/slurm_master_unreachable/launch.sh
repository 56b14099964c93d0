#!/bin/sh
# task 1 got another port (a stale environment file of an earlier job)
export MASTER_PORT=29643 TASK1_ENV="MASTER_PORT=29644"
exec python srun.py 2 python train.py
