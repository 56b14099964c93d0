#!/bin/sh
export MASTER_PORT=29645
exec python srun.py 4 python -u train.py
