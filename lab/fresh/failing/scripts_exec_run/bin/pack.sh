#!/bin/sh
# pack.sh FOLDER ARCHIVE
set -e
cd "$1"
tar czf "$2" ./*.pt ./*.csv
echo "packed $2"
