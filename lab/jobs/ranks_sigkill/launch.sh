#!/bin/sh
python guard.py &
exec torchrun --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 \
    --rdzv-id=emb --log-dir logs --redirects 3 train.py
