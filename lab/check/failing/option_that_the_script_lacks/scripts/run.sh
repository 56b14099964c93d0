#!/usr/bin/env bash
set -e
cd "$(dirname "$0")/.."

OUT=${OUT:-/output/cnn}
python train.py \
    --out "$OUT" \
    --lr 3e-4 \
    --warmup-steps 500 \
    --amp
