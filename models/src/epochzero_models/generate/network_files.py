"""Writes networks as programs, with their weights."""

from __future__ import annotations

from pathlib import Path

import torch

from epochzero_models.generate.measurement import Generated, Generation
from epochzero_models.generate.program import program


def write(generation: Generation, folder: Path) -> list[Path]:
    """Write a program for each network, and its state dict if it was trained.

    Returns:
        The files: ``model001.py``, ``model001.pt`` and so on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for network in generation.networks:
        path = folder / f"{network.name}.py"
        path.write_text(program(network.plan, _title(network, generation)), encoding="utf-8")
        written.append(path)
        if network.weights:
            torch.save(dict(network.weights), path.with_suffix(".pt"))
            written.append(path.with_suffix(".pt"))
    return written


def _title(network: Generated, generation: Generation) -> str:
    told = f"{network.name}: {network.plan.parameters:,} parameters"
    return f"{told}, generated with seed {generation.seed}."
