#!/bin/bash
set -euo pipefail
# tokens were packed by the nightly job; the sparse file stands for the 12 GB shard
truncate -s 12G tokens.bin
ulimit -v 8000000
python pretrain.py --data tokens.bin --block-size 128
