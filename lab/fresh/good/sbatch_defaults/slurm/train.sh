#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=08:00:00
set -euo pipefail

VARIANT=${1:-small}
: "${DATA:=/data/music}"
WORK="/scratch/rolls/${SLURM_JOB_ID:-manual}"
mkdir -p "$WORK"/{ckpt,logs}

[ -f /etc/profile.d/modules.sh ] && . /etc/profile.d/modules.sh || true
if command -v module >/dev/null 2>&1; then
    module load cuda || echo "no module cuda"
fi

ARGS=(--data "$DATA/rolls.npz" --ckpt "$WORK/ckpt")
case "$VARIANT" in
    wide) ARGS+=(--width 256 --heads 8) ;;
    small) ARGS+=(--width 64) ;;
    *) echo "unknown variant $VARIANT" >&2; exit 2 ;;
esac
[ -n "${RESUME:-}" ] && ARGS+=(--resume "$RESUME")

run() {
    echo "+ $*"
    "$@" 2>&1 | tee "$WORK/logs/$(basename "$2" .py).log"
}

run python rolls.py "${ARGS[@]}"
if [ -e "$WORK/ckpt/model.pt" ]; then
    run python entropy.py "$WORK/ckpt/model.pt"
fi
