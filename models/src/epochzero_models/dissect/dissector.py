"""A `Dissector`: a detector with its threshold, stored in a directory without pickles.

DIR/dissector.json     name of the detector, layers, classes, threshold
DIR/detector.npz       what the detector has learned
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from epochzero.errors import InputError, writing
from epochzero_models.classifier import type_name
from epochzero_models.dissect.detectors import DETECTORS, Detector, Validity

SCHEMA = "epochzero.dissector/2"
DESCRIPTION, ARRAYS = "dissector.json", "detector.npz"


@dataclass(frozen=True, eq=False)
class Dissector:
    """Says which inputs a model can handle.

    Attributes:
        name: of the detector, one of `DETECTORS`.
        detector: computes the scores.
        layers: names of the layers that the detector needs.
        classes: how many the model has.
        threshold: the model cannot handle inputs with a lower score.
    """

    name: str
    detector: Detector
    layers: tuple[str, ...]
    classes: int
    threshold: float

    def save(self, folder: str | Path) -> list[Path]:
        """Write it into a directory, which is created if it does not exist.

        Raises:
            InputError: it cannot be written.
        """
        root = Path(folder)
        described = {
            "schema": SCHEMA,
            "detector": self.name,
            "layers": self.layers,
            "classes": self.classes,
            "threshold": self.threshold,
        }
        arrays = {name: tensor.cpu().numpy() for name, tensor in self.detector.named_buffers()}
        with writing(folder):
            root.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(root / ARRAYS, allow_pickle=False, **arrays)
            (root / DESCRIPTION).write_text(json.dumps(described, indent=2) + "\n", "utf-8")
        return [root / DESCRIPTION, root / ARRAYS]


def read_dissector(folder: str | Path) -> Dissector:
    """Return what `Dissector.save` has written.

    Raises:
        InputError: it does not exist, is damaged, or is of another version.
    """
    if not isinstance(folder, str | Path):
        raise InputError(
            "a dissector must be a Dissector or its directory, not " + type_name(folder)
        )
    root = Path(folder)
    try:
        described = json.loads((root / DESCRIPTION).read_text("utf-8"))
        with np.load(root / ARRAYS, allow_pickle=False) as opened:
            arrays = {name: torch.from_numpy(opened[name]) for name in opened.files}
    except OSError as error:
        raise InputError(
            f"{folder} cannot be read: {error.strerror or error}; `epochzero model dissect --out {folder}` "
            "creates it"
        ) from error
    except (ValueError, EOFError, zipfile.BadZipFile, RecursionError) as error:
        raise InputError(f"{folder} is damaged: {error}") from error
    if not isinstance(described, dict) or described.get("schema") != SCHEMA:
        raise InputError(
            f"{folder} was not written by this version of `epochzero model dissect`: its schema is "
            f"not {SCHEMA}"
        )
    try:
        return _made(described, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder} is damaged: {error!r}") from error


def _made(described: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> Dissector:
    name, layers = described["detector"], tuple(map(str, described["layers"]))
    if name not in DETECTORS:
        raise ValueError(f"detector must be one of {', '.join(DETECTORS)}, not {name!r}")
    classes, threshold = int(described["classes"]), float(described["threshold"])
    detector = DETECTORS[name](**arrays)
    expected = frozenset(DETECTORS[name].__annotations__) - {"growth"}
    if isinstance(detector, Validity):
        expected = frozenset(
            f"{part}{at}" for at in range(len(layers)) for part in ("weight", "bias")
        )
        if any(len(tensor) != classes for tensor in arrays.values()):
            raise ValueError("the weights of a layer have the wrong shape")
    if expected != frozenset(arrays):
        raise ValueError(
            f"expected the arrays {', '.join(sorted(expected))}, found {', '.join(arrays)}"
        )
    return Dissector(name, detector, layers, classes, threshold)
