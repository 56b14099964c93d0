#!/bin/sh
# One log file a rank: logs/reviews/attempt_0/<rank>/{stdout,stderr}.log
exec torchrun --nnodes=1 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 \
    --rdzv-id=reviews --log-dir logs --redirects 3 train.py
