"""Whether a batch may be split: is the gradient of the whole the sum of those of its parts?

This is tried with two or three examples before a batch is split for the first time. Random numbers are replaced by
constants. The trial also determines the weights of the parts, since the loss may be a mean over examples, a mean
over the targets that are not ignored, or a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from epochzero.run.memory.batches import examples_of, part_of, tensors_of
from epochzero.run.memory.limit import in_host_memory

Weight = Callable[[Any], float]
"""Returns the weight of a micro-batch in the loss of its batch; 1 for each if the loss is a sum."""

_TOLERANCE, _LOW_PRECISION_TOLERANCE = 1e-3, 5e-2
"""Relative difference of gradients that counts as rounding: in float32, and with 16-bit types."""


class CoupledBatch(Exception):  # noqa: N818 - a reason, not an error of the user
    """A batch must not be split; the message explains why."""


def batch_norms(model: nn.Module) -> list[str]:
    """Return the paths of the layers whose output depends on the composition of the batch."""
    return [
        path
        for path, module in model.named_modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm)
        and (module.training or module.running_mean is None)
    ]


def check_splitting(
    loss_of: Callable[[Any], Tensor], model: nn.Module, batch: Any, given: Weight | None
) -> tuple[Weight, bool]:
    """Return how to weight the parts of a batch, and whether the loss is a mean (otherwise it is a sum).

    Args:
        loss_of: a batch -> its loss.
        model: whose gradients are compared; its gradients and buffers are not changed.
        batch: two examples or more.
        given: the user's weight of a part; None to determine it.

    Raises:
        CoupledBatch: no weights make the sum of the parts' gradients equal to the gradient of the whole.
    """
    few = part_of(batch, 0, min(examples_of(batch), 3))
    first, rest = part_of(few, 0, 1), part_of(few, 1, examples_of(few))
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with _settled(model) as seen, _Targets() as targets:
        whole, left, right = (_gradient(loss_of(part), parameters) for part in (few, first, rest))
    if not whole.norm().isfinite() or not whole.norm():
        raise CoupledBatch(
            "the gradient of its first examples is zero or not finite: no comparison is possible"
        )
    tolerance = _LOW_PRECISION_TOLERANCE if seen.low_precision else _TOLERANCE
    means: list[Weight] = [given] if given else [*_by_targets(targets, few), _by_examples]
    for weight in means:
        share = weight(first) / max(weight(first) + weight(rest), 1e-30)
        if _differ(whole, share * left + (1 - share) * right) <= tolerance:
            return weight, True
    if given is None and _differ(whole, left + right) <= tolerance:
        return _by_examples, False
    raise CoupledBatch(
        "the gradient of a batch differs from that of its parts: the loss or a layer couples examples, as "
        "in-batch negatives do, or the loss is not a mean over examples (then pass weight=)"
    )


def _gradient(loss: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    """Return the gradient as one vector in CPU memory."""
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    with in_host_memory():
        return torch.cat(
            [
                torch.zeros(parameter.numel()).double()
                if gradient is None
                else gradient.cpu().double().flatten()
                for parameter, gradient in zip(parameters, found, strict=True)
            ]
        )


def _differ(first: Tensor, second: Tensor) -> float:
    return float((first - second).norm() / first.norm())


def _by_examples(part: Any) -> float:
    return float(examples_of(part))


@dataclass(frozen=True, slots=True)
class _ByTargets:
    """Counts the targets that cross entropy does not ignore, with their class weights."""

    path: str
    shift: int
    ignored: int
    class_weights: Tensor | None

    def __call__(self, part: Any) -> float:
        targets = _kept(dict(tensors_of(part))[self.path], self.shift, self.ignored)
        if self.class_weights is None:
            return float(targets.numel())
        return float(self.class_weights[targets].sum())


def _by_targets(seen: _Targets, few: Any) -> Iterator[_ByTargets]:
    """Yield the tensors of the batch that a cross entropy used as its targets."""
    for target, ignored, class_weights in seen.calls[:1]:
        for path, tensor in tensors_of(few):
            for shift in (0, 1):  # language models predict the next token
                if tensor.is_floating_point() or tensor.dim() <= shift:
                    continue
                if torch.equal(_kept(tensor, shift, ignored), _kept(target, 0, ignored)):
                    yield _ByTargets(path, shift, ignored, class_weights)


def _kept(targets: Tensor, shift: int, ignored: int) -> Tensor:
    shifted = targets[..., shift:].flatten()
    return shifted[shifted != ignored]


class _Targets(TorchFunctionMode):
    """Records the arguments of cross entropies with mean reduction."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Tensor, int, Tensor | None]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (nn.functional.cross_entropy, nn.functional.nll_loss):
            names = ("input", "target", "weight", "size_average", "ignore_index")
            given = dict(zip(names, args, strict=False)) | kwargs
            target = given.get("target")
            if isinstance(target, Tensor) and not target.is_floating_point():
                self.calls.append((target, given.get("ignore_index", -100), given.get("weight")))
        return func(*args, **kwargs)


class _WithoutChance(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Replaces random numbers by constants, and records whether 16-bit types are used."""

    low_precision = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__.rstrip("_")
        if name == "native_dropout":
            return args[0].clone(), torch.ones_like(args[0], dtype=torch.bool)
        result = func(*args, **(kwargs or {}))
        if name == "bernoulli":
            return result.fill_(1)
        if name in _RANDOM:
            return result.fill_(0.5)
        if any(isinstance(leaf, Tensor) and leaf.dtype in _LOW for leaf in tree_leaves(result)):
            self.low_precision = True
        return result


_RANDOM = {"rand", "rand_like", "randn", "randn_like", "normal", "uniform", "exponential"}
_LOW = {torch.float16, torch.bfloat16}


@contextmanager
def _settled(model: nn.Module) -> Iterator[_WithoutChance]:
    """Remove randomness, let batch norm use its running statistics, and restore all buffers afterwards."""
    norms = [(norm, norm.training) for norm in map(model.get_submodule, batch_norms(model))]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    for norm, _ in norms:
        norm.training = False
    try:
        mode = _WithoutChance()  # type: ignore[no-untyped-call]
        with sdpa_kernel(SDPBackend.MATH), mode:
            yield mode
    finally:
        for norm, was in norms:
            norm.training = was
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
