#!/usr/bin/env bash
set -euo pipefail
OUT=$(mktemp -d)
for seed in 1 2 3; do
  for alpha in 0.1 1.0; do
    python fit.py --seed "$seed" --alpha "$alpha" --out "$OUT/$seed-$alpha.json"
  done
done
python collect.py "$OUT"
