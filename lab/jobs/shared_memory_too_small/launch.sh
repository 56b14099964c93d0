#!/bin/bash
# What a container gets with too small a --shm-size.
exec unshare --user --map-root-user --mount bash -c '
    mount -t tmpfs -o size=2m shm /dev/shm
    python train.py --workers 2
'
