#!/bin/bash
set -e
ulimit -v 6000000
python train.py
echo "training finished"
