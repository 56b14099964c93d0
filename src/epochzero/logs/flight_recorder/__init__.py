"""Dumps of PyTorch's flight recorder: which rank did not arrive in a collective, and where the
others wait for it.

A dump holds the last collectives that one rank called. `dumps` reads it, `waits` compares the ranks.
The recorder and its format: https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html
"""

from epochzero.logs.flight_recorder.dumps import (
    DUMP_NAME,
    Dump,
    Operation,
    dumps_since,
    looks_like_dump,
    read_dump,
)
from epochzero.logs.flight_recorder.report import report_of, sentence
from epochzero.logs.flight_recorder.waits import CollectiveFault, first_fault
