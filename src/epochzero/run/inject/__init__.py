"""Makes the platform fail on purpose: does the job survive?

catalog    the faults: effects and texts
grammar    ``kill-rank=1@step:200`` -> InjectedFault
plan       the faults of an attempt, in the form that its processes read
injector   the watcher that triggers them and records their outcomes
child      faults within the job's own Python: writes, connections, reads, memory
"""
