#!/bin/sh
export MASTER_PORT=29671
exec python srun.py 2 python train.py
