#!/bin/bash
# The node's scratch disk is shared; another job fills it (NEIGHBOR=running) or has cleaned up.
mkdir scratch
exec unshare --user --map-root-user --mount bash -c '
    mount -t tmpfs -o size=32m scratch scratch
    if [ "$NEIGHBOR" = running ]; then
        (until [ -e scratch/epoch_1.npz ]; do sleep 0.1; done
         cat /dev/zero > scratch/sort.tmp 2> /dev/null) &
    fi
    python train.py --scratch scratch
'
