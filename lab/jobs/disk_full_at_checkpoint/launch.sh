#!/bin/bash
# Scratch space of the job: an 8 MB file system of its own.
mkdir scratch
exec unshare --user --map-root-user --mount bash -c '
    mount -t tmpfs -o size=8m scratch scratch
    python train.py --output scratch
'
