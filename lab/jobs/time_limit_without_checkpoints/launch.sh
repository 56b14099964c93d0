#!/bin/bash
# A queue with a time limit of 4 s.
timeout --verbose 4 python train.py
