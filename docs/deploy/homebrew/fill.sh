#!/usr/bin/env bash
# fill.sh SDIST ADDRESS: prints the formula of a source distribution that is published at an address.
set -euo pipefail
sum=$(shasum -a 256 "$1" | cut -d" " -f1)
sed -e "/^# /d" -e "s|@URL@|$2|" -e "s|@SHA256@|$sum|" "$(dirname "$0")/epochzero.rb"
