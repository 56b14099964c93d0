#!/bin/bash
set -e
echo "building csrc/sampler.so"
g++ -O2 -shared -fPIC -o sampler.so csrc/sampler.cpp
python train.py
