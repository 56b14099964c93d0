#!/bin/bash
export NUM_EPOCHS=1e2 LEARNING_RATE=0.01
python train.py
rc=$?
echo "Training script returned $rc"
exit $rc
