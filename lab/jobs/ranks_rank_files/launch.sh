#!/bin/bash
# three plain processes, one log file a rank, as a hand-made ssh loop would start them
mkdir -p logs
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29661 WORLD_SIZE=3
for RANK in 0 1 2; do
    RANK=$RANK python train.py &
    pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
    wait "$pid" || { status=$?; echo "process $pid ended with status $status"; }
done
exit $status
