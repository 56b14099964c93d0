#!/bin/bash
# The output share is mounted by an administrator; on this node it came up read-only.
mkdir -m 555 output
python train.py --output output
