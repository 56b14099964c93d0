#!/bin/bash
set -euo pipefail
mkdir -p results
python prepare.py --rows 300 --output results/table.csv
for fold in 0 1 2; do
    python train.py --table results/table.csv --fold "$fold" --output "results/fold_$fold.json"
done
python report.py results/fold_*.json
