"""How a job uses PyTorch: its training steps, models and losses."""

from __future__ import annotations

from collections.abc import Iterator

from epochzero.check.program.events import LibraryCall
from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant, Value

_SCALERS = (
    "torch.GradScaler()",
    "torch.amp.GradScaler()",
    "torch.amp.grad_scaler.GradScaler()",
    "torch.cuda.amp.GradScaler()",
)
PARALLEL_WRAPPERS = (
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
)
"""Classes that wrap a model to train it on several GPUs."""
_MODES = ("torch.nn.Dropout", "torch.nn.BatchNorm", "torch.nn.AlphaDropout", "torchvision.models.")


def backward_calls(program: Program) -> Iterator[LibraryCall]:
    """Calls of ``loss.backward()``."""
    return (
        call
        for call in program.calls
        if call.name.endswith(".backward") and call.receiver is not None
    )


def optimizer_steps(program: Program) -> Iterator[LibraryCall]:
    """Calls of ``step`` of one of PyTorch's optimizers, or of a gradient scaler that steps one."""
    for call in program.calls:
        maker, _, method = call.name.rpartition(".")
        if method != "step" or "lr_scheduler" in maker:
            continue
        if maker.startswith("torch.optim.") or (maker in _SCALERS and call.arguments):
            yield call


def stepped_optimizer(step: LibraryCall) -> Value | None:
    """The optimizer of one of the `optimizer_steps`."""
    scaled = step.name.rpartition(".")[0] in _SCALERS
    return step.arguments[0] if scaled else step.receiver


def makes_layers_with_modes(program: Program) -> bool:
    """Whether the job creates a layer that behaves differently in training and evaluation."""
    return any(
        call.name.startswith(_MODES) or call.name.endswith(".from_pretrained")
        for call in program.calls
    )


def is_off(value: Value | None) -> bool:
    """Whether a flag is certainly false."""
    return isinstance(value, Constant) and not value.value
