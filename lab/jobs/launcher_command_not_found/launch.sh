#!/usr/bin/env bash
set -eo pipefail
mkdir -p logs
echo "===== job $(basename "$PWD") ====="
echo "nproc_per_node=1 retries_on_failure=0 error_file=none"
deepspeed --num_nodes 1 train.py --epochs 2 2>&1 | tee logs/train.log
echo "===== finished ====="
