"""The platform fails on purpose: does the job survive it?

catalog    the faults: what each does, and what may be said of it
grammar    ``kill-rank=1@step:200`` -> Fault
plan       the faults of an attempt, as its processes read them
injector   the watcher that brings them about, and tells what came of each
child      what fails within the job's own Python: writes, connections, reads, memory
"""
