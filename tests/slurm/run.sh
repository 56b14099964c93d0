#!/usr/bin/env bash
# run.sh PYTHON [options of pytest]: starts a Slurm of two nodes, runs the tests next to this file in it, and stops it.
set -euo pipefail
here=$(dirname "$(realpath "$0")"); top=$(mktemp -d)
trap '"$here"/stop.sh "$top"' EXIT
python=$1; shift
SLURM_CONF=$("$here"/start.sh "$top" "$(realpath -s "$python")") TEST_SLURM=1 \
    "$python" -m pytest "$here" "$@"
