#!/bin/bash
set -euo pipefail

export OMP_NUM_THREADS=8
export PYTHONPATH="$PWD/src:${PYTHONPATH:-}"

cd src
python train.py --run-name baseline --steps 20000
