#!/usr/bin/env bash
set -euo pipefail
NAME=${1:?which configuration}
shift
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
export PYTHONPATH="$ROOT/src${PYTHONPATH:+:$PYTHONPATH}"
case "$NAME" in
    small|large) CONF="conf/$NAME.yaml" ;;
    *) echo "unknown: $NAME" >&2; exit 2 ;;
esac
for folder in out logs; do
    [[ -d $folder ]] || mkdir "$folder"
done
trap 'echo "stopped with $?"' EXIT
python src/main.py "$CONF" "$@" 2>&1 | tee "logs/$NAME.log"
cp "$CONF" out/
