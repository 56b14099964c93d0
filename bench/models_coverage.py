"""Neuron coverage beside EvalDNN's own class, on the same networks and inputs, at each threshold.

EvalDNN 0.13 is no longer maintained and wants numba, which makes its loops faster and changes nothing else: here they
run as plain Python. Networks have random weights: a small convolutional one, ResNet-18 and one of linear layers.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from common import SEED, save
from models_dissect import network, resnet18
from numpy.typing import NDArray
from torch import Tensor, nn

from epochzero_models import Examples
from epochzero_models.classifier import as_classifier
from epochzero_models.evaluate.coverage import neuron_coverage

CLOSE = 1e-9


def networks() -> dict[str, tuple[nn.Module, Tensor]]:
    """Networks with inputs."""
    torch.manual_seed(SEED)
    linear = nn.Sequential(
        nn.Linear(7, 9), nn.Tanh(), nn.Dropout(), nn.Linear(9, 4), nn.LayerNorm(4), nn.Softmax(1)
    )
    return {
        "convolutional": (network(), torch.rand(50, 1, 8, 8)),
        "ResNet-18": (resnet18(), torch.rand(6, 3, 16, 16)),
        "linear": (linear, torch.randn(50, 7)),
    }


def theirs(coverage: Any, module: nn.Module, inputs: Tensor) -> Any:
    """EvalDNN's object after these inputs."""
    outputs: list[NDArray[Any]] = []

    def keep(layer: nn.Module, given: Any, output: Tensor) -> None:
        outputs.append(output.numpy().copy())

    leaves = [one for one in module.modules() if not list(one.children())]
    for one in leaves:
        if not isinstance(one, nn.Dropout):
            one.register_forward_hook(keep)
    with torch.no_grad():
        module(inputs)
    coverage.update(outputs, 0)
    return coverage


def evaldnn(folder: Path) -> Any:
    """EvalDNN's class, with loops in plain Python."""
    plain = ModuleType("numba")
    vars(plain).update(njit=lambda **options: lambda function: function, prange=range)
    sys.modules["numba"] = plain
    sys.path.insert(0, str(folder))
    return importlib.import_module("evaldnn.metrics.neuron_coverage").NeuronCoverage


def main() -> None:
    """Compares both and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaldnn", type=Path, required=True, help="folder of EvalDNN 0.13")
    coverage = evaldnn(parser.parse_args().evaldnn)
    numbers: dict[str, object] = {}
    for name, (module, inputs) in networks().items():
        examples = Examples(name, inputs, torch.zeros(len(inputs), dtype=torch.int64))
        ours = neuron_coverage(as_classifier(module), examples)
        other = theirs(coverage(tuple(one for one, _ in ours)), module, inputs)
        gaps = [abs(share - other.get(threshold)) for threshold, share in ours]
        numbers[name] = {
            "neurons": other._num_neuron,
            "thresholds": len(ours),
            "equal": sum(gap < CLOSE for gap in gaps),
            "above_half": dict(ours)[0.5],
        }
        print(f"{name}: {numbers[name]}")
    save("models_coverage", numbers, rivals={"EvalDNN": "0.13", "torch": torch.__version__})


if __name__ == "__main__":
    main()
