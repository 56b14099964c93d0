"""FeatureNET: networks that differ from each other, out of a feature model, and the evolution of the best.

Ghamizi, Cordy, Papadakis and Le Traon (SPLC 2019, ICSE 2020). `feature_model` says which features go together,
`sampling` draws products of it, `architecture` and `plan` make layers of a product, `network` and `program` a module
and a file of them, `writing` writes it; `training`, `evolution` and `measured` find out which are good. `breaking` makes networks that
must fail.
"""

from __future__ import annotations

from epochzero_models.generate.faulty_networks import Broken, break_one
from epochzero_models.generate.measurement import Generated, Generation, evolve, generate
from epochzero_models.generate.network_files import write
from epochzero_models.generate.program import program

__all__ = [
    "Broken",
    "Generated",
    "Generation",
    "break_one",
    "evolve",
    "generate",
    "program",
    "write",
]
