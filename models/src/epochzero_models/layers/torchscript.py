"""Layers of TorchScript: the operators of its graph.

Compiled modules do not support hooks. The graph of all calls, inlined, can be read, and a function can be built from it
that returns intermediate values in addition to the outputs. Operators within a condition or a loop are not
observed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from epochzero_models.layers import SEQUENCES, Layer, LayerCall, calls_of

_OVER_SEQUENCES = ("conv1d", "conv_transpose1d")


class ScriptedLayers:
    """The operators of a loaded TorchScript module.

    An operator with weights has the name of their module, any other its own name; the second of a name ends in ``_2``.
    """

    def __init__(self, module: torch.jit.ScriptModule) -> None:
        self._module = module
        self._made: dict[frozenset[str], tuple[Any, list[Layer]]] = {}

    @cached_property
    def known(self) -> Sequence[Layer]:
        """Return the operators whose output is a tensor that depends on the inputs."""
        return tuple(layer for layer, _ in _operators(self._graph()))

    def run(self, inputs: Tensor, wanted: Collection[str]) -> tuple[Any, list[LayerCall]]:
        """Return the outputs, and those of the wanted operators."""
        key = frozenset(wanted)
        if key not in self._made:
            self._made[key] = self._function(key)
        function, layers = self._made[key]
        raw, outputs = function(self._module, inputs)
        convolved = any(layer.kind in _OVER_SEQUENCES for layer in self.known)
        seen = zip(layers, outputs, strict=True)
        return raw, calls_of(seen, len(inputs), () if convolved else SEQUENCES)

    def _graph(self) -> Any:
        graph = self._module.inlined_graph  # a copy, which may be modified
        torch._C._jit_pass_constant_propagation(graph)
        return graph

    def _function(self, wanted: frozenset[str]) -> tuple[Any, list[Layer]]:
        """Return a function of module and inputs that returns the outputs and the wanted values."""
        graph = self._graph()
        found = [(layer, value) for layer, value in _operators(graph) if layer.name in wanted]
        seen = graph.create("prim::ListConstruct", [value for _, value in found], 1)
        seen.output().setType(torch._C.ListType.ofTensors())
        (raw,) = graph.outputs()
        both = graph.create("prim::TupleConstruct", [raw, seen.output()], 1)
        both.output().setType(torch._C.TupleType([raw.type(), seen.output().type()]))
        graph.appendNode(seen)
        graph.appendNode(both)
        graph.eraseOutput(0)
        graph.registerOutput(both.output())
        function = torch._C._create_function_from_graph("forward", graph)
        return function, [layer for layer, _ in found]


def _operators(graph: Any) -> Iterator[tuple[Layer, Any]]:
    """Yield each operator that depends on the inputs, with its output."""
    module, *inputs = (argument.debugName() for argument in graph.inputs())
    paths = {module: ""}
    reached = set(inputs)
    names: Counter[str] = Counter()
    for node in graph.nodes():
        given = [argument.debugName() for argument in node.inputs()]
        made = [output.debugName() for output in node.outputs()]
        if node.kind() == "prim::GetAttr":
            paths[made[0]] = f"{paths.get(given[0], '')}.{node.s('name')}".lstrip(".")
        elif reached.intersection(given) or any(True for _ in node.blocks()):
            reached.update(made)
            space, _, kind = node.kind().partition("::")
            if space == "aten" and [output.type().kind() for output in node.outputs()] == [
                "TensorType"
            ]:
                weights = (paths[value].rpartition(".")[0] for value in given if value in paths)
                name = next(weights, "") or kind.strip("_")
                names[name] += 1
                number = f"_{names[name]}" if names[name] > 1 else ""
                yield Layer(f"{name}{number}", kind.strip("_")), node.output()
