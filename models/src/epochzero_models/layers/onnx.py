"""Layers of ONNX: operators of the graph, whose outputs become additional outputs of the model (``onnx``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from epochzero.errors import InputError
from epochzero_models.layers import SEQUENCES, Layer, LayerCall, calls_of


def run_onnx(session: Any, outputs: Sequence[str], inputs: Tensor) -> list[Tensor]:
    """Run an onnxruntime session; if its batch size is fixed, in batches of that size."""
    name, size = session.get_inputs()[0].name, session.get_inputs()[0].shape[0]
    if not isinstance(size, int) or size == len(inputs):
        return [torch.from_numpy(value) for value in session.run(outputs, {name: inputs.numpy()})]
    # An empty batch is filled too.
    short = -len(inputs) % size if len(inputs) else size
    filled = functional.pad(inputs, (0, 0) * (inputs.ndim - 1) + (0, short))
    parts = [run_onnx(session, outputs, part) for part in filled.split(size)]  # type: ignore[no-untyped-call]
    return [torch.cat(group)[: len(inputs)] for group in zip(*parts, strict=True)]


class OnnxLayers:
    """The operators of an ONNX file, each called as its first output.

    Args:
        path: of the file.
        output: name of the model's output.
        opened: bytes of a model -> a session of onnxruntime.
    """

    def __init__(self, path: Path, output: str, opened: Callable[[bytes], Any]) -> None:
        self._path, self._output, self._opened = path, output, opened

    @cached_property
    def _model(self) -> Any:
        try:
            return import_module("onnx").load(str(self._path))
        except Exception as error:  # onnxruntime reads files that onnx does not
            raise InputError(f"{self._path}: onnx cannot read its layers: {error}") from error

    @cached_property
    def known(self) -> Sequence[Layer]:
        """Return the operators between inputs and outputs."""
        return tuple(_operators(self._model.graph))

    @cached_property
    def _session(self) -> Any:
        graph = self._model.graph
        there = {output.name for output in graph.output}
        graph.output.extend(
            import_module("onnx").ValueInfoProto(name=layer.name)
            for layer in self.known
            if layer.name not in there
        )
        return self._opened(self._model.SerializeToString())

    def run(self, inputs: Tensor, wanted: Collection[str]) -> tuple[Any, list[LayerCall]]:
        """Return the outputs, and those of the wanted operators."""
        layers = [layer for layer in self.known if layer.name in wanted]
        names = [self._output, *(layer.name for layer in layers)]
        raw, *outputs = run_onnx(self._session, names, inputs)
        return raw, calls_of(
            zip(layers, outputs, strict=True), len(inputs), () if self._convolved else SEQUENCES
        )

    @cached_property
    def _convolved(self) -> bool:
        """Whether there is a convolution over sequences, whose weights have three dimensions."""
        graph = self._model.graph
        flat = {tensor.name for tensor in graph.initializer if len(tensor.dims) == 3}
        return any(
            node.op_type in ("Conv", "ConvTranspose") and flat.intersection(node.input)
            for node in graph.node
        )


def _operators(graph: Any) -> Iterator[Layer]:
    weights = {tensor.name for tensor in graph.initializer}
    reached = {value.name for value in graph.input} - weights
    for node in graph.node:
        branches = any(value.HasField("g") for value in node.attribute)
        if branches or reached.intersection(node.input):
            reached.update(node.output)
            yield Layer(node.output[0], node.op_type)
