"""Which neurons of a model are active for which input: what spectrum-based scores are computed from.

    with Neurons(model, "failing.jsonl"):
        model(inputs[is_wrong])

A neuron is a unit of a layer without layers of its own: a column of its output, of an image a channel, whose
places are averaged. Its values are scaled for each input and layer to 0 for the least active unit and 1 for the
most active one, as for neuron coverage (Pei et al., "DeepXplore", SOSP 2017). Layers of one unit, and
those whose output has not one row an input, are passed over.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch

from epochzero.run.watch.child.records import Records

SCHEMA = "epochzero.neurons/1"
_RANDOM = ("AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout")


class Neurons:
    """Writes a record for each call of a model, while it is entered; the model computes as ever.

    Args:
        model: to be called with a batch of inputs, the inputs in its first dimension.
        path: of the file that records are appended to.
        threshold: a neuron is active above it, 0 to 1.
    """

    def __init__(self, model: torch.nn.Module, path: str, threshold: float = 0.5) -> None:
        self._model = model
        self._records = Records(str(path), append=True)
        self._threshold = threshold
        self._active: dict[str, torch.Tensor] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> Neurons:
        for path, module in self._model.named_modules():
            if not module._modules and type(module).__name__ not in _RANDOM:
                self._handles.append(module.register_forward_hook(self._hook(path)))
        self._handles.append(self._model.register_forward_hook(self._ended))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._records.flush()

    def _hook(self, path: str) -> Any:
        def called(module: torch.nn.Module, _: Any, output: Any) -> None:
            try:
                self._look(path, module, output)
            except Exception as error:
                self._records.emit("failed", where=path, error=repr(error)[:500])

        return called

    @torch.no_grad()
    def _look(self, path: str, module: torch.nn.Module, output: Any) -> None:
        if not isinstance(output, torch.Tensor) or not output.is_floating_point():
            return
        if output.dim() < 2:
            return
        of_places = output.detach().float()
        if of_places.dim() == 3 and not type(module).__name__.endswith("1d"):
            # Of a sequence the last dimension has the units.
            of_places = of_places.transpose(1, 2)
        units = of_places.flatten(2).mean(2) if of_places.dim() > 2 else of_places
        if units.shape[1] < 2:
            return
        lowest, highest = units.amin(1, keepdim=True), units.amax(1, keepdim=True)
        active = (units - lowest) > self._threshold * (highest - lowest)
        before = self._active.get(path)
        # A layer that is called again adds what is active then.
        self._active[path] = (
            active if before is None or before.shape != active.shape else before | active
        )

    def _ended(self, *_: Any) -> None:
        active, self._active = self._active, {}
        try:
            inputs = min((tensor.shape[0] for tensor in active.values()), default=0)
            complete = {path: t for path, t in active.items() if t.shape[0] == inputs}
            self._records.emit(
                "neurons",
                schema=SCHEMA,
                inputs=inputs,
                units={path: tensor.shape[1] for path, tensor in complete.items()},
                active={path: _packed(tensor) for path, tensor in complete.items()},
            )
        except Exception as error:
            self._records.emit("failed", where="", error=repr(error)[:500])


def _packed(active: torch.Tensor) -> list[str]:
    """Of each input the units as bits, eight a byte from the lowest, in hexadecimal."""
    missing = -active.shape[1] % 8
    bits = torch.nn.functional.pad(active.to(torch.uint8), (0, missing))
    powers = 2 ** torch.arange(8, device=bits.device, dtype=torch.uint8)
    rows = (bits.reshape(bits.shape[0], -1, 8) * powers).sum(2)
    return [bytes(row).hex() for row in rows.tolist()]
