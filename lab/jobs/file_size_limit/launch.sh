#!/bin/bash
# The scratch file system allows files of at most 20 MB (counted in blocks of 1 kB).
ulimit -f 20000
python train.py --checkpoint best_model.bin
