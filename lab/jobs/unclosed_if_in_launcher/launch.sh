#!/bin/bash
MODE=${MODE:-train}
echo "mode: $MODE"
if [ "$MODE" = "train" ]; then
    for seed in 1 2 3; do
        python train.py --seed $seed
    
else
    python train.py --seed 0
fi
