"""FeatureNET: networks that differ from each other, drawn from a feature model.

Ghamizi, Cordy, Papadakis and Le Traon (SPLC 2019, ICSE 2020). `feature_model` states which features may be combined,
`sampling` draws products of it, `architecture` and `plan` make layers of a product, `network` and `program` a module
and a file of them, which `network_files` writes. `training` and `measurement` rank the networks by their accuracy.
`faulty_networks` makes networks that must fail. FeatureNET's evolution is not included: with equally many trainings
it was no better than random search.
"""

from __future__ import annotations

from epochzero_models.generate.faulty_networks import Broken, break_one
from epochzero_models.generate.measurement import Generated, Generation, generate, train_networks
from epochzero_models.generate.network_files import write
from epochzero_models.generate.program import program

__all__ = [
    "Broken",
    "Generated",
    "Generation",
    "break_one",
    "generate",
    "program",
    "train_networks",
    "write",
]
