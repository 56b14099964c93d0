#!/bin/bash
set -e
export EXPERIMENT=${EXPERIMENT:-lr_sweep_04}
echo "[launch] $(date -u +%H:%M:%S) starting experiment $EXPERIMENT"
echo "[launch] error policy: stop at the first failed command"
cd /mnt/blob/experiments/$EXPERIMENT
python train.py --output ./results
echo "[launch] done"
