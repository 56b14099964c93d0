#!/bin/bash
set -e
# The queue stops jobs after an hour, so the training runs in pieces.
python train.py --epochs 2
echo "--- second piece ---"
python train.py --epochs 4
