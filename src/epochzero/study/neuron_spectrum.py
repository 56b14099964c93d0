"""Spectrum-based scores of neurons and layers: which are active where a model fails, and not where it passes.

A test is an input that passes or fails, or a whole run. A neuron that is active in it is covered by it, as a
statement is that is executed (Eniser, Gerasimou, Sen: "DeepFault: Fault Localization for Deep Neural Networks", FASE
2019). A layer is covered where any of its neurons is. That is nearly always so: the layers' own scores are all
alike, as Jahan et al. (EMSE 2025) found with Tarantula, and their neurons' scores separate them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from epochzero.errors import InputError, reading
from epochzero.run.watch.history import read_records

SCHEMA = "epochzero.spectrum/1"

Array = npt.NDArray[np.float64]
Activity = Mapping[str, npt.NDArray[np.bool_]]
"""Path of each layer -> which neurons are active in which test, (tests, neurons)."""


@dataclass(frozen=True, slots=True)
class NeuronScore:
    """A neuron.

    Attributes:
        layer: path of its layer.
        unit: its number in that.
        score: the higher, the more suspicious; infinite for D* where it is active in all failing tests
            and in no passing one.
        failing, passing: tests in which it is active.
    """

    layer: str
    unit: int
    score: float
    failing: int
    passing: int


@dataclass(frozen=True, slots=True)
class LayerScore:
    """A layer.

    Attributes:
        layer: its path.
        score: of the layer, covered where any of its neurons is active.
        mean, highest: of its neurons' scores.
        neurons: how many it has.
    """

    layer: str
    score: float
    mean: float
    highest: float
    neurons: int


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The scores, the most suspicious first.

    Attributes:
        formula: of `FORMULAS`.
        passing, failing: how many tests.
        layers: by score, then by the mean of their neurons.
        neurons: of all layers, by score.
    """

    formula: str
    passing: int
    failing: int
    layers: tuple[LayerScore, ...]
    neurons: tuple[NeuronScore, ...]


def spectrum(passing: Activity, failing: Activity, formula: str = "tarantula") -> Spectrum:
    """Scores all layers that both have.

    Args:
        passing, failing: what was active in the tests that pass, and in those that fail.
        formula: a name in `FORMULAS`.

    Raises:
        InputError: there are no tests of one kind, no layer that both have, or layers of another size.
    """
    if formula not in FORMULAS:
        raise InputError(f"unknown formula {formula!r}; choose one of {', '.join(FORMULAS)}")
    tests = [_tests(passing, "passing"), _tests(failing, "failing")]
    shared = [path for path in passing if path in failing]
    if not shared:
        raise InputError("the passing and the failing tests have no layer in common")
    layers, neurons = [], []
    for path in shared:
        if passing[path].shape[1] != failing[path].shape[1]:
            raise InputError(f"layer {path}: its size differs between passing and failing tests")
        covered = [np.asarray(of[path].sum(axis=0), float) for of in (passing, failing)]
        scores = FORMULAS[formula](covered[1], covered[0], tests[1], tests[0])
        own = [np.array([of[path].any(axis=1).sum()], float) for of in (passing, failing)]
        of_layer = FORMULAS[formula](own[1], own[0], tests[1], tests[0])[0]
        layers.append(
            LayerScore(
                path, float(of_layer), float(scores.mean()), float(scores.max()), len(scores)
            )
        )
        neurons += [
            NeuronScore(path, unit, float(score), int(covered[1][unit]), int(covered[0][unit]))
            for unit, score in enumerate(scores)
        ]
    return Spectrum(
        formula,
        tests[0],
        tests[1],
        tuple(sorted(layers, key=lambda layer: (-layer.score, -layer.mean))),
        tuple(sorted(neurons, key=lambda neuron: (-neuron.score, -neuron.failing, neuron.passing))),
    )


def _tests(activity: Activity, name: str) -> int:
    count = len(next(iter(activity.values()), ()))
    if not count:
        raise InputError(f"no {name} tests")
    return count


def tarantula(failing: Array, passing: Array, of_failing: int, of_passing: int) -> Array:
    """Jones, Harrold, ASE 2005: the share of failing tests relative to that of passing ones.

    Args:
        failing, passing: tests of each kind that cover an element, (elements,).
        of_failing, of_passing: all tests of each kind.
    """
    fails, passes = failing / of_failing, passing / of_passing
    return _divided(fails, fails + passes)


def ochiai(failing: Array, passing: Array, of_failing: int, of_passing: int) -> Array:
    """Abreu et al., TAIC PART 2007; arguments as of `tarantula`."""
    return _divided(failing, np.sqrt(of_failing * (failing + passing)))


def dstar(failing: Array, passing: Array, of_failing: int, of_passing: int) -> Array:
    """D* of Wong et al., IEEE Transactions on Reliability 2014, with its star at 2; arguments as of `tarantula`."""
    return _divided(failing**2, passing + (of_failing - failing))


FORMULAS: Mapping[str, Callable[[Array, Array, int, int], Array]] = {
    "tarantula": tarantula,
    "ochiai": ochiai,
    "dstar": dstar,
}


def _divided(above: Array, below: Array) -> Array:
    """0 for what no test covers, infinite for what nothing speaks against."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(above > 0, above / below, 0.0)


def read_activity(paths: Sequence[Path], by: str = "input") -> Activity:
    """What was active in the tests of some files.

    A file has records of `epochzero.run.watch.child.neurons`, or those of a watched training. That is one
    test, in which a layer is one element: covered where it was called and any of its units answers to the input.

    Args:
        paths: of the files.
        by: ``input``, for each input as a test, or ``run``, for each file as one: a neuron is covered in it
            where any input makes it active.

    Raises:
        InputError: a file cannot be read, has neither, or knows a layer by another size.
    """
    parts: list[Activity] = []
    for path in paths:
        found = _of_inputs(path) or _of_training(path)
        if not found:
            raise InputError(f"{path} contains neither records of neurons nor a watched training")
        if by == "run":
            found = {name: np.array([active.any(axis=0)]) for name, active in found.items()}
        parts.append(found)
    shared = [name for name in parts[0] if all(name in part for part in parts)] if parts else []
    return {name: _stacked(name, (part[name] for part in parts)) for name in shared}


def _of_inputs(path: Path) -> Activity:
    found: dict[str, list[npt.NDArray[np.bool_]]] = {}
    calls = 0
    for record in _neurons(path):
        calls += 1
        for name, rows in record["active"].items():
            units = int(record["units"][name])
            found.setdefault(name, []).append(np.array([_bits(row, units) for row in rows]))
    # A layer that only some of the inputs reach has no place among the tests.
    return {name: _stacked(name, of) for name, of in found.items() if len(of) == calls}


def _neurons(path: Path) -> Iterable[Mapping[str, Any]]:
    with reading(path):
        lines = path.read_bytes().splitlines()
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("kind") == "neurons" and record.get("inputs"):
            yield record


def _bits(packed: str, units: int) -> npt.NDArray[np.bool_]:
    found = np.unpackbits(np.frombuffer(bytes.fromhex(packed), np.uint8), bitorder="little")
    return found[:units].astype(bool)


def _of_training(path: Path) -> Activity:
    history = read_records(path)
    if not history.iterations:
        return {}
    answers = {
        name: any(
            iteration.layers[name].get("constant", 0) < 1
            for iteration in history.iterations
            if name in iteration.layers
        )
        for name, _ in history.order
    }
    return {name: np.array([[answer]]) for name, answer in answers.items()}


def _stacked(name: str, parts: Iterable[npt.NDArray[np.bool_]]) -> npt.NDArray[np.bool_]:
    found = list(parts)
    if len({part.shape[1] for part in found}) > 1:
        raise InputError(f"layer {name}: its size differs between the records")
    return np.concatenate(found)


def to_dict(found: Spectrum) -> dict[str, Any]:
    """The JSON form; an infinite score is the text "inf"."""
    described = asdict(found)
    for ranked in (*described["layers"], *described["neurons"]):
        ranked.update({key: "inf" for key, value in ranked.items() if value == math.inf})
    return {"schema": SCHEMA, **described}
