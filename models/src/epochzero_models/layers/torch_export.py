"""Layers of a program of ``torch.export``: its modules, whose calls its graph records.

The program has no calls of modules, so hooks see nothing. Each operator states the module that it comes from; the last
one of a module returns the output of that module.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from epochzero.errors import InputError
from epochzero_models.layers import SEQUENCES, Layer, LayerCall, calls_of

_MODES = ("train", "training")
"""Arguments of operators that are true if the program was exported in training mode."""


def is_program(module: nn.Module) -> bool:
    """Whether a module was made of a program of ``torch.export``."""
    return isinstance(module, fx.GraphModule) and any(
        node.meta.get("torch_fn") for node in module.graph.nodes
    )


class ExportedLayers:
    """The modules of a program.

    Args:
        module: of the program.

    Raises:
        InputError: the program was exported in training mode, which nothing can change.
    """

    def __init__(self, module: fx.GraphModule) -> None:
        self._module = module
        self._found: dict[str, tuple[Layer, str]] = {}
        for node in module.graph.nodes:
            if node.op != "call_function":
                continue
            _require_evaluation(node)
            stack = list((node.meta.get("nn_module_stack") or {}).values())
            has_parts = False
            # Layers are in the order of completion, as hooks see modules: parts come before their container.
            for path, kind in reversed(stack):
                if path:
                    known, _ = self._found.pop(path, (None, ""))
                    parts = has_parts or (known is not None and known.has_parts)
                    name = str(kind).rpartition(".")[2]
                    layer = Layer(path, name, path.rpartition(".")[0], parts)
                    self._found[path] = (layer, node.name)
                has_parts = True

    @property
    def known(self) -> Sequence[Layer]:
        """Return all modules that the program calls."""
        return tuple(layer for layer, _ in self._found.values())

    def run(self, inputs: Tensor, wanted: Collection[str]) -> tuple[Any, list[LayerCall]]:
        """Return the outputs, and those of the wanted modules."""
        nodes = [(layer, node) for layer, node in self._found.values() if layer.name in wanted]
        recorder = _Recorder(self._module, {node for _, node in nodes})
        raw = recorder.run(inputs)
        # The last operator of a module is often that of its container too.
        seen = [(layer, recorder.seen[node]) for layer, node in nodes]
        convolved = any(layer.kind in ("Conv1d", "ConvTranspose1d") for layer in self.known)
        return raw, calls_of(seen, len(inputs), () if convolved else SEQUENCES)


class _Recorder(fx.Interpreter):
    """Runs the graph and stores the outputs of some nodes."""

    def __init__(self, module: fx.GraphModule, wanted: Collection[str]) -> None:
        super().__init__(module)
        self._wanted = wanted
        self.seen: dict[str, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        output = super().run_node(n)
        if n.name in self._wanted:
            self.seen[n.name] = output
        return output


def _require_evaluation(node: fx.Node) -> None:
    if isinstance(node.target, torch._ops.OpOverload):
        for argument, value in zip(node.target._schema.arguments, node.args, strict=False):
            if argument.name in _MODES and value is True:
                raise InputError(
                    f"the program was exported in training mode ({node.name}): call eval() before torch.export.export"
                )
