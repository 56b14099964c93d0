#!/bin/bash
# one node of the A100 partition
export OMP_NUM_THREADS=4
GPUS=${GPUS:-8}
torchrun --standalone --nproc_per_node="$GPUS" vox.py --data /data/voxel/scans.npz --epochs 300
