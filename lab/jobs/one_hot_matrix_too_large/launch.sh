#!/bin/bash
# The queue gives every job 4 GB of address space.
ulimit -v 4000000
exec python build_features.py --users 200000 --items 20000
