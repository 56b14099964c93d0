"""Faults of a training while it trains: what was seen, what it means, which layer and line made it.

child     runs in the job and writes records of cheap statistics
history   records -> History: series and tables by layer
faults/   one file a fault: History -> Findings
lines/    which line of the source made a layer or set a value
verdict   Findings -> Watched: the root, and its symptoms under it
live      watches a job of `epochzero run`; `epochzero.integrations.watching` this process
page      the verdict and the curves as HTML
"""
