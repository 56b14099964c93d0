#!/bin/bash
set -euo pipefail
WORK=${WORK:-work}
mkdir -p "$WORK"
python prepare.py --out "$WORK/pairs.npz" --count 300
for seed in 1 2; do
    python train.py --data "$WORK/pairs.npz" --seed "$seed" --out "$WORK/model_$seed.pt"
done
python ensemble.py "$WORK"/model_*.pt --data "$WORK/pairs.npz"
