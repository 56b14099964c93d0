#!/usr/bin/env bash
set -euo pipefail
OUT=${OUT:-/scratch/pavement}
mkdir -p "$OUT"
python train.py --csv /data/pavement/segments.csv --out "$OUT" --epochs 120
python summarize.py "$OUT/predictions.csv" "$OUT/summary.xlsx"
