#!/bin/bash
# The node's local cache is small; here it is a 4 MB file system of the job's own.
mkdir cache
exec unshare --user --map-root-user --mount bash -c '
    mount -t tmpfs -o size=4m cache cache
    python tokenize_shards.py --cache cache
'
