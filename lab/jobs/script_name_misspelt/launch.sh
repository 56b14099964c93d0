#!/bin/bash
echo "Running on $(nproc --all > /dev/null && echo a CPU node)"
export PYTHONPATH=$PWD/src:$PYTHONPATH
python src/trian.py --epochs 3 --batch-size 64
