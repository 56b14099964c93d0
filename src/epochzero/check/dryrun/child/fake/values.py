"""What the program reads of a fake tensor: the true value where it is known, else an assumed one.

Small tensors that come from real data (labels, lengths, masks, token ids) keep their values on the
pretended GPU, and what is computed of them alone is computed truly. Anything else is unknown: a number
is read as one (it can be a divisor and has a logarithm), a tensor of whole numbers as zeros (a valid
index everywhere), a truth value as false (nothing is NaN, nothing overflowed).
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensor

KNOWN_BYTES = 1 << 16
_NAME = "_known_value"


def known(tensor: torch.Tensor) -> Optional[torch.Tensor]:
    """The real tensor with the same values, or None where they are not known."""
    if isinstance(tensor, FakeTensor):
        value: Optional[torch.Tensor] = tensor.__dict__.get(_NAME)
        return value
    return tensor if tensor.device.type == "cpu" else None


def remember(tensor: Any, value: Any) -> None:
    """Keep the values of a fake tensor if they are few; of a list of tensors, those of each."""
    if isinstance(tensor, (list, tuple)):
        for position, item in enumerate(tensor):
            remember(item, value[position])
    elif isinstance(tensor, FakeTensor) and value.numel() * value.element_size() <= KNOWN_BYTES:
        tensor.__dict__[_NAME] = value.detach()


def forget(tensor: torch.Tensor) -> None:
    """The values were overwritten by unknown ones."""
    tensor.__dict__.pop(_NAME, None)


def unknown_scalar(dtype: torch.dtype) -> Any:
    """The number that stands for a value that no one knows."""
    if dtype == torch.bool:
        return False
    return 1.0 if dtype.is_floating_point or dtype.is_complex else 1


def unknown_tensor(like: torch.Tensor) -> torch.Tensor:
    """A real CPU tensor of the shape and type of a fake one."""
    whole = not (like.dtype.is_floating_point or like.dtype.is_complex)
    number = 0 if whole and like.numel() != 1 else unknown_scalar(like.dtype)
    return torch.full(tuple(like.shape), number, dtype=like.dtype, device="cpu")
