#!/bin/bash
# Errors are kept on the node's local disk, so that the shared log stays readable.
python train.py 2> "$TMPDIR/train.err" || exit 1
python evaluate.py
