#!/bin/bash
# Two trainings, one after the other.
set -eu

export MASTER_ADDR=127.0.0.1
export MASTER_PORT=293400

python train.py --world-size 2 --task sort
python train.py --world-size 2 --task reverse
