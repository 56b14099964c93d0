#!/bin/sh
# the scratch folder is mounted on demand and takes some seconds
(sleep 6; mkdir scratch; echo 0123456789 > scratch/cache.bin) &
exec torchrun --nproc-per-node=2 --max-restarts=5 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 \
    --rdzv-id=again --log-dir logs --redirects 3 train.py
