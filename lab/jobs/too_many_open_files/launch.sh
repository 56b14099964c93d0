#!/bin/bash
ulimit -n 64
python train.py
