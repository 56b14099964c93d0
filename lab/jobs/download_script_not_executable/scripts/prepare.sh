#!/bin/bash
mkdir -p "$1"
seq 1 100 > "$1/numbers.txt"
