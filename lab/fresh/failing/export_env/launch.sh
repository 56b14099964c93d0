#!/usr/bin/env bash
set -e
cd "$(dirname "$0")"
export RUN_NAME="ranker-$(date +%Y%m%d)"
export OUTPUT_DIR="${OUTPUT_DIR:-/outputs}/$RUN_NAME"
mkdir -p "$OUTPUT_DIR"
exec python -u train_ranker.py --features 24 --rounds 200
