#!/bin/bash
set -euo pipefail
: "${STEPS:=1000}"
OUT=/outputs/vocoder
mkdir -p "$OUT"
if [ ! -e /usr/lib/libsndfile.so.1 ]; then
    echo "sound library is missing, adding it"
fi
apt-get update -qq
apt-get install -y --no-install-recommends libsndfile1
python vocoder.py --steps "$STEPS" --out "$OUT"
