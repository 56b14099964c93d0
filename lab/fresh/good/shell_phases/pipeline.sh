#!/bin/sh
set -eu
here=$(dirname "$0")
cd "$here"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
if python -c "import faiss" 2>/dev/null; then
    INDEX=faiss
else
    INDEX=plain
fi
grep -q nothing settings.args || true
python make_data.py "$WORK/rows.jsonl" --count 40
test -s "$WORK/rows.jsonl"
head -n 30 "$WORK/rows.jsonl" > "$WORK/train.jsonl"
tail -n 10 "$WORK/rows.jsonl" > "$WORK/test.jsonl"
python search.py @settings.args --index "$INDEX" --train "$WORK/train.jsonl" --test "$WORK/test.jsonl"
python -m json.tool found.json > /dev/null && echo valid
[ -f optional.sh ] && . ./optional.sh || echo "no optional step"
