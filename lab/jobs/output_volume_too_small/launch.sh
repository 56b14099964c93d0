#!/bin/bash
# The job's own output volume, which its specification makes 4 MB large.
mkdir output
exec unshare --user --map-root-user --mount bash -c '
    mount -t tmpfs -o size=4m output output
    python train.py --output output
'
