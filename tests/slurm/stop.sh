#!/usr/bin/env bash
# stop.sh DIRECTORY: ends what start.sh started there.
set -uo pipefail
for file in "$1"/slurmd-*.pid "$1"/slurmctld.pid; do
    [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null
done
exit 0
