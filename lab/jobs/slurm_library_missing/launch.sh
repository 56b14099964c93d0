#!/bin/sh
# task 2 lands on a node with last month's image, without /extra on its path
export PYTHONPATH=extra TASK2_ENV="PYTHONPATH=/opt/site" MASTER_PORT=29642
exec python srun.py 4 python train.py
