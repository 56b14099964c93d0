"""A `Dissector`: trained sub-models with a threshold, stored in a directory without pickles.

DIR/dissector.json     layers, classes, growth of the weights, threshold
DIR/submodels.npz      weight and bias of each sub-model
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from epochzero.errors import InputError
from epochzero_models.dissect.submodels import Submodel
from epochzero_models.dissect.validity import (
    GROWTHS,
    Growth,
    profile_validity,
    snapshot_validity,
)

SCHEMA = "epochzero.dissector/1"
DESCRIPTION, ARRAYS = "dissector.json", "submodels.npz"


def snapshots_by(
    submodels: Sequence[Submodel], features: Sequence[Tensor], logits: Tensor
) -> Tensor:
    """Validity at each layer and at the outputs, shape (n, layers + 1).

    Args:
        submodels: of the layers.
        features: pooled outputs of each layer, shape (n, features).
        logits: of the model, shape (n, classes).
    """
    predicted = logits.argmax(dim=1)
    inner = [submodel.logits(seen) for submodel, seen in zip(submodels, features, strict=True)]
    return torch.stack([snapshot_validity(tensor, predicted) for tensor in (*inner, logits)], dim=1)


@dataclass(frozen=True, eq=False)
class Dissector:
    """Says how valid a prediction is.

    Attributes:
        submodels: in the order of depth.
        classes: how many the model has.
        growth: how the weights of the layers grow.
        threshold: a prediction of less validity is beyond the model.
    """

    submodels: tuple[Submodel, ...]
    classes: int
    growth: Growth
    threshold: float

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the modules that are looked into."""
        return tuple(submodel.layer for submodel in self.submodels)

    def validity(self, features: Sequence[Tensor], logits: Tensor) -> Tensor:
        """Profile validity of the model's predictions, shape (n,).

        Args:
            features: pooled outputs of each layer, shape (n, features).
            logits: of the model, shape (n, classes).
        """
        return profile_validity(snapshots_by(self.submodels, features, logits), self.growth)

    def to(self, device: torch.device) -> Dissector:
        """The same on a device."""
        moved = tuple(
            Submodel(submodel.layer, submodel.weight.to(device), submodel.bias.to(device))
            for submodel in self.submodels
        )
        return Dissector(moved, self.classes, self.growth, self.threshold)

    def save(self, folder: str | Path) -> list[Path]:
        """Writes it into a folder, which is made where it is not there.

        Raises:
            InputError: it cannot be written.
        """
        root = Path(folder)
        described = {
            "schema": SCHEMA,
            "layers": self.layers,
            "classes": self.classes,
            "growth": self.growth,
            "threshold": self.threshold,
        }
        arrays = {
            f"{at}.{name}": getattr(submodel, name).cpu().numpy()
            for at, submodel in enumerate(self.submodels)
            for name in ("weight", "bias")
        }
        try:
            root.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(root / ARRAYS, allow_pickle=False, **arrays)
            (root / DESCRIPTION).write_text(json.dumps(described, indent=2) + "\n", "utf-8")
        except OSError as error:
            raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
        return [root / DESCRIPTION, root / ARRAYS]


def read_dissector(folder: str | Path) -> Dissector:
    """What `Dissector.save` has written.

    Raises:
        InputError: it is not there, damaged, or of another version.
    """
    root = Path(folder)
    try:
        described = json.loads((root / DESCRIPTION).read_text("utf-8"))
        with np.load(root / ARRAYS, allow_pickle=False) as opened:
            arrays = {name: torch.from_numpy(opened[name]) for name in opened.files}
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be read: {error.strerror or error}; `epochzero model dissect --out {folder}` "
            "creates it"
        ) from error
    except (ValueError, EOFError, zipfile.BadZipFile, RecursionError) as error:
        raise InputError(f"{folder}: is damaged: {error}") from error
    if not isinstance(described, dict) or described.get("schema") != SCHEMA:
        raise InputError(
            f"{folder}: is not a dissection of this version: its schema is not {SCHEMA}"
        )
    try:
        return _made(described, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: is damaged: {error!r}") from error


def _made(described: dict[str, Any], arrays: dict[str, Tensor]) -> Dissector:
    classes, growth = int(described["classes"]), described["growth"]
    if growth not in GROWTHS:
        raise ValueError(f"growth must be one of {', '.join(GROWTHS)}, not {growth!r}")
    submodels = tuple(
        Submodel(str(layer), arrays[f"{at}.weight"], arrays[f"{at}.bias"])
        for at, layer in enumerate(described["layers"])
    )
    for submodel in submodels:
        if (
            submodel.weight.ndim != 2
            or submodel.bias.shape != (classes,)
            or len(submodel.weight) != classes
        ):
            raise ValueError(f"layer {submodel.layer!r} has weights of another shape")
    return Dissector(submodels, classes, growth, float(described["threshold"]))
