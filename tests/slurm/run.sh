#!/usr/bin/env bash
# run.sh PYTEST [options]: starts a Slurm of two nodes, runs the tests next to this file in it, and stops it.
set -euo pipefail
here=$(dirname "$(realpath "$0")"); top=$(mktemp -d)
trap '"$here"/stop.sh "$top"' EXIT
SLURM_CONF=$("$here"/start.sh "$top") EPOCHZERO_TEST_SLURM=1 "$@" "$here"
