#!/bin/bash
# Processes on the login node get 5 seconds of processor time.
ulimit -t 5
python train.py
exit $?
