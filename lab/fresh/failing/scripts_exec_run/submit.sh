#!/bin/sh
set -e
here=$(dirname "$0")
OUT=/scratch/graph
mkdir -p $OUT
python "$here/gnn.py" --edges /data/graph/edges.npy --features /data/graph/features.npy --out $OUT
"$here/bin/pack.sh" $OUT /results/graph.tar.gz
