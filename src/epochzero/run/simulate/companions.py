"""What holds a job's own Python to the simulated platform."""

from __future__ import annotations

from epochzero.injected.companions import AT_START, Companion

REQUEST_VARIABLE = "EPOCHZERO_SIMULATED"
"""The file with the request; a job can tell by it that it is simulated."""
_CHILD = "epochzero.run.simulate.child"
SIMULATE_COMPANIONS = (
    Companion(AT_START, f"{_CHILD}.begin:begin_python"),
    Companion("torch", f"{_CHILD}.begin:begin_torch"),
    Companion("torch", f"{_CHILD}.gpus:begin_torch"),
)
