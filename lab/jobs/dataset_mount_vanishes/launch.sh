#!/bin/bash
# The data lie on a mounted file system, which goes away during the job (STORAGE=failing) or stays.
mkdir data
exec unshare --user --map-root-user --mount bash -c '
    mount -t tmpfs data data
    python -c "
import numpy as np
for n in range(6): np.save(f\"data/shard_{n}.npy\", np.ones((100, 8)) * n)
"
    python train.py --data data & job=$!
    if [ "$STORAGE" = failing ]; then
        until [ -e epoch_1 ]; do sleep 0.1; done
        umount -l data
    fi
    wait $job
'
