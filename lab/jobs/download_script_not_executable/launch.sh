#!/bin/bash
set -e
echo "preparing data"
./scripts/prepare.sh data
echo "training"
python train.py
