"""FeatureNET: networks that differ from each other, drawn from a feature model.

Ghamizi, Cordy, Papadakis and Le Traon (SPLC 2019, ICSE 2020). `feature_model` states which features may be combined,
`counting` counts its products, `sampling` draws them, `architecture` and `plan` turn a product into layers, and `program` writes them as a file.
`generation` combines these steps. `faulty_networks` creates networks that must fail. FeatureNET's search for the most accurate
network is not included: the best of a diverse or evolved set was no better than the best of as many random networks.
"""

from __future__ import annotations

from epochzero_models.generate.faulty_networks import Broken, break_one
from epochzero_models.generate.generation import (
    ANY_DEPTH,
    ANY_SIZE,
    Generated,
    Generation,
    generate,
)
from epochzero_models.generate.program import program, write

__all__ = [
    "ANY_DEPTH",
    "ANY_SIZE",
    "Broken",
    "Generated",
    "Generation",
    "break_one",
    "generate",
    "program",
    "write",
]
