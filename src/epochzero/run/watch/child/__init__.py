"""Runs in the job, in the job's own Python: looks at the training and writes what it sees.

start   before the job's first line, when `epochzero run --watch` starts it
hooks   puts itself between the job and torch, and calls the
observer  which knows where in the training the job is, asks the
schedule  whether to look closer, and writes statistics (statistics, batches, structure) as
records   one JSON object a line.

Only the standard library and torch (or Keras) are needed, Python 3.10 or newer. Nothing here draws random numbers,
writes to a tensor of the job, keeps one alive, or raises into the job.
"""
