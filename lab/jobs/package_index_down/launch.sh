#!/bin/bash
# Installs what the image lacks from the cluster's package index, which is down (INDEX=down) or up.
python index.py & index=$!
trap "kill $index 2> /dev/null" EXIT
until [ -e index_ready ]; do sleep 0.1; done
python -m pip install --disable-pip-version-check --retries 1 --timeout 5 \
    --index-url http://127.0.0.1:29731/ --target packages -r requirements.txt || exit 1
PYTHONPATH=packages python train.py
