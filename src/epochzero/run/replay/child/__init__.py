"""Keeps what a failing step needs, and plays it again; runs in the job's own process.

begin     the companions that `epochzero run --capture` and `epochzero replay` put into the job
sources   what the program draws from chance: kept in order, or handed out again
hooks     puts itself between the job and torch, and tells the
course    where in the training the job is; it asks whoever keeps or plays:
keeper    the last snapshot and the batches since, written when the job fails
player    loads the snapshot, hands out the batches, compares, and ends the job after the failing step
failure   how a job failed: an exception, a loss that is not finite, an exit code, a signal
structure containers as JSON, with the tensors in them by name
files     names of files, compressed JSON, digests
layout, tensors  the file of tensors: its layout, and how it is written and read
looks     a step as a table: batch, weights, gradients, random states

Only the standard library and torch are needed, Python 3.10 or newer. While capturing, nothing here draws random
numbers, writes to a tensor of the job, or raises into the job.
"""
