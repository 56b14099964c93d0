#!/bin/bash
# Partition "short": wall time 6 s, then TERM.
timeout --verbose 6 python train.py --epochs 1000
status=$?
[ $status -eq 0 ] && echo "job complete"
exit $status
