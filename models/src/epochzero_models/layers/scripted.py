"""Layers of TorchScript: the operators of its graph.

Modules that were compiled take no hooks. But the graph of all that is called can be read, with calls
unfolded, and a function can be made of it that gives values on the way besides its outputs. What stands within a
condition or a loop is not seen.
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

    One that takes weights is called as their module is, any other one as itself, the second of a name with ``_2``.
    """

    def __init__(self, module: torch.jit.ScriptModule) -> None:
        self._module = module
        self._made: dict[frozenset[str], tuple[Any, list[Layer]]] = {}

    @cached_property
    def known(self) -> Sequence[Layer]:
        """The operators that give a tensor which depends on the inputs."""
        return tuple(layer for layer, _ in _operators(self._graph()))

    def run(self, inputs: Tensor, wanted: Collection[str]) -> tuple[Any, list[LayerCall]]:
        """The outputs, and what the wanted operators give."""
        key = frozenset(wanted)
        if key not in self._made:
            self._made[key] = self._function(key)
        function, layers = self._made[key]
        raw, outputs = function(self._module, inputs)
        convolved = any(one.kind in _OVER_SEQUENCES for one in self.known)
        seen = zip(layers, outputs, strict=True)
        return raw, calls_of(seen, len(inputs), () if convolved else SEQUENCES)

    def _graph(self) -> Any:
        graph = self._module.inlined_graph  # a copy, whatever is done to it
        torch._C._jit_pass_constant_propagation(graph)
        return graph

    def _function(self, wanted: frozenset[str]) -> tuple[Any, list[Layer]]:
        """A function of module and inputs that gives the outputs and the wanted values."""
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
    """Each operator on the way from the inputs with its output."""
    module, *inputs = (one.debugName() for one in graph.inputs())
    paths = {module: ""}
    reached = set(inputs)
    names: Counter[str] = Counter()
    for node in graph.nodes():
        given = [one.debugName() for one in node.inputs()]
        made = [one.debugName() for one in node.outputs()]
        if node.kind() == "prim::GetAttr":
            paths[made[0]] = f"{paths.get(given[0], '')}.{node.s('name')}".lstrip(".")
        elif reached.intersection(given) or any(True for _ in node.blocks()):
            reached.update(made)
            space, _, kind = node.kind().partition("::")
            if space == "aten" and [one.type().kind() for one in node.outputs()] == ["TensorType"]:
                weights = (paths[one].rpartition(".")[0] for one in given if one in paths)
                name = next(weights, "") or kind.strip("_")
                names[name] += 1
                number = f"_{names[name]}" if names[name] > 1 else ""
                yield Layer(f"{name}{number}", kind.strip("_")), node.output()
