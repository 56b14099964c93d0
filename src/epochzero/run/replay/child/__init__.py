"""Stores what a failing step needs and replays it; runs in the job's own process.

begin     companions that `epochzero run --capture` and `epochzero replay` start in the job
sources   sources of randomness: record their values in order, or return recorded ones
hooks     intercepts torch and reports events to the course
course    position of the job in its training; calls a follower, which records or replays:
keeper    the last snapshot and the batches since, written when the job fails
player    loads the snapshot, delivers the batches, compares, and stops the job after the failing step
failure   how a job failed: an exception, a non-finite loss, an exit code, a signal
structure containers as JSON, with the tensors in them by name
files     file names, compressed JSON, digests
layout, tensors  the tensor file: its layout, writing and reading
looks     a step as a table: batch, weights, gradients, random states

Requires only the standard library and torch, Python 3.10 or newer. While capturing, this code draws no random
numbers, writes to no tensor of the job, and raises no exception into the job.
"""
