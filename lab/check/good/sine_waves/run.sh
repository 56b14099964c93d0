#!/bin/sh
set -e
python generate.py
python train.py --steps 4
