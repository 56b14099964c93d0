"""The tables, models and numbers of the ADF paper (Zhang et al., ICSE 2020), from a clone of its repository."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rivals.fairness_searches import SEEDS, Directed, Local, clustered, global_phase, walk
from torch import nn

from epochzero_models.fairness import Attribute, Domain, PeopleTable, SearchBudget
from epochzero_models.fairness.search import Archive
from epochzero_models.fairness.subject import Subject

__all__ = ["PAPER", "protocol", "published_model", "published_table"]

FILES = {"census": "census", "credit": "credit_sample", "bank": "bank"}


def _of(
    table: str,
    protected: int,
    accuracy: float,
    discriminated: tuple[float, float],
    seeds: tuple[int, int],
    found: tuple[int, int],
) -> Mapping[str, Any]:
    published = {
        "accuracy": accuracy,
        "discriminated": discriminated[0],
        "discriminated_after_retraining": discriminated[1],
        "seeds": {"ADF": seeds[0], "AEQUITAS": seeds[1]},
        "instances": {"ADF": found[0], "AEQUITAS": found[1]},
    }
    return {"table": table, "protected": protected, "published": published}


# Table, column from 0; accuracy, % discriminated before and after retraining, seeds of the local phase and instances
# of ADF and of AEQUITAS, as published.
PAPER = {
    "paper: census, age": _of("census", 0, 0.8815, (0.1088, 0.0226), (658, 101), (256_980, 6045)),
    "paper: census, race": _of("census", 7, 0.8815, (0.0975, 0.0615), (456, 95), (139_179, 4737)),
    "paper: census, gender": _of("census", 8, 0.8815, (0.0314, 0.0165), (334, 37), (47_644, 2930)),
    "paper: bank, age": _of("bank", 0, 0.9226, (0.0460, 0.0119), (872, 43), (364_758, 8949)),
    "paper: credit, age": _of("credit", 12, 1.0, (0.2793, 0.1205), (594, 175), (233_664, 38_479)),
    "paper: credit, gender": _of("credit", 8, 1.0, (0.0768, 0.0393), (451, 47), (73_497, 4996)),
}  # fmt: skip
_EXPORT = """
import sys
import numpy, tensorflow
reader = tensorflow.train.load_checkpoint(sys.argv[1])
names = [one for one in reader.get_variable_to_shape_map() if "Adam" not in one]
numpy.savez(sys.argv[2], **{one.replace("/", "."): reader.get_tensor(one) for one in names})
"""


def published_table(clone: Path, table: str, protected: int) -> PeopleTable:
    """A table of the paper with its bounds of each column."""
    rows = np.loadtxt(clone / "datasets" / FILES[table], delimiter=",", skiprows=1, dtype=np.int64)
    code = (clone / "adf_utils" / "config.py").read_text(encoding="utf-8")
    of_table = re.split(r"^class ", code, flags=re.MULTILINE)
    body = next(one for one in of_table if one.startswith(table))
    bounds = [tuple(map(int, one)) for one in re.findall(r"append\(\[(-?\d+), (-?\d+)\]\)", body)]
    attributes = tuple(
        Attribute(str(at), tuple(float(value) for value in range(low, high + 1)))
        for at, (low, high) in enumerate(bounds)
    )
    domain = Domain(attributes, (protected,))
    inputs = torch.from_numpy(rows[:, :-1]).float()
    return PeopleTable(table, domain, domain.levels(inputs), torch.from_numpy(rows[:, -1]))


def published_model(clone: Path, table: str, python: Path | None) -> nn.Module:
    """A network of the paper, with its weights."""
    if python is None:
        sys.exit("--python: the paper's models need a Python with tensorflow to be read")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "weights.npz"
        told = (str(python), "-c", _EXPORT, str(clone / "models" / table / "test.model"), str(file))
        subprocess.run(told, check=True, capture_output=True)
        weights = dict(np.load(file))
    layers: list[nn.Module] = []
    for name in _in_order(weights):
        kernel = torch.from_numpy(weights[name])
        linear = nn.Linear(*kernel.shape)
        linear.weight.data = kernel.T.contiguous()
        linear.bias.data = torch.from_numpy(weights[name.replace("kernel", "bias")])
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval().requires_grad_(False)


def _in_order(weights: Mapping[str, Any]) -> list[str]:
    """The names of the kernels, from the widest to the two classes."""
    kernels = [name for name in weights if name.endswith("kernel")]
    return sorted(kernels, key=lambda name: -weights[name].shape[1])


def _reached(archive: Archive, wanted: int) -> float | None:
    course = archive.found().course
    return next((seconds for seconds, count in course if count >= wanted), None)


def protocol(subject: Subject, people: PeopleTable, seed: int) -> dict[str, Any]:
    """The paper's: one round of 1,000 seeds (all rows of a smaller table), then 1,000 steps from each that is found."""
    seeds = min(SEEDS, len(people.labels))
    endless = SearchBudget(inputs=10**12, clock=time.process_time)
    draw = torch.Generator().manual_seed(seed)
    adf = Archive("ADF", subject, endless)
    found = global_phase(adf, next(clustered(people.levels, people.domain, seeds, draw)), draw)
    starts = {"ADF": len(found[0])}
    walk(adf, *found, Local(adf, draw))
    rival = Archive("AEQUITAS", subject, endless)
    levels = people.domain.drawn(seeds, draw)
    checked = rival.check(levels)
    starts["AEQUITAS"] = int(checked.new.sum())
    directed = Directed(rival, draw)
    walk(rival, levels[checked.new], checked.partner[checked.new], directed, directed.learn)
    return {
        "seeds": starts,
        "instances": {"ADF": len(adf), "AEQUITAS": len(rival)},
        "instances_per_checked": {one.search: len(one) / one.checked for one in (adf, rival)},
        "seconds_to_1000": {one.search: _reached(one, 1000) for one in (adf, rival)},
    }
