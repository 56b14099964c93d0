"""Which kernel scaled dot product attention takes on a GPU: what it saves decides the memory.

A build for the CPU has the formula only, which keeps a matrix of all pairs. The order and conditions are
those of ``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`` (torch 2.13): flash, then efficient,
then the formula; cuDNN's is taken first on Hopper only where the program asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch


@dataclass(frozen=True)
class Kernel:
    """A fused kernel and what it needs.

    Attributes:
        name: ``flash`` or ``efficient``.
        capability: The least compute capability.
        dtypes: The types of query, key and value.
        head_size: The largest size of a head.
        mask: Whether it takes a mask.
    """

    name: str
    capability: tuple[int, int]
    dtypes: frozenset[torch.dtype]
    head_size: int
    mask: bool


_HALVES = frozenset({torch.float16, torch.bfloat16})
# check_flash_attention_hardware_support: sm80 on. check_mem_efficient_hardware_support: sm50 on; its
# types are float, half, and from sm80 bfloat16.
KERNELS = (
    Kernel("flash", (8, 0), _HALVES, 256, mask=False),
    Kernel("efficient", (8, 0), _HALVES | {torch.float32}, 65536, mask=True),
    Kernel("efficient", (5, 0), frozenset({torch.float16, torch.float32}), 65536, mask=True),
)


def choose(capability: tuple[int, int], dtype: torch.dtype, head_size: int, mask: bool) -> str:
    """``flash``, ``efficient`` or ``math``."""
    allowed = {
        "flash": torch._C._get_flash_sdp_enabled(),
        "efficient": torch._C._get_mem_efficient_sdp_enabled(),
    }
    for kernel in KERNELS:
        fits = capability >= kernel.capability and dtype in kernel.dtypes
        fits = fits and head_size <= kernel.head_size and (kernel.mask or not mask)
        if fits and allowed[kernel.name]:
            return kernel.name
    return "math"


def attention(
    capability: tuple[int, int], original: Callable[..., torch.Tensor]
) -> Callable[..., torch.Tensor]:
    """`scaled_dot_product_attention` that runs the GPU's kernel for tensors of ``cuda``."""

    def scaled_dot_product_attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: Optional[torch.Tensor] = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: Optional[float] = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        places = {query.device.type, key.device.type, value.device.type}
        options: dict[str, Any] = {"scale": scale, "enable_gqa": enable_gqa}
        if places == {"cuda"} and torch.is_autocast_enabled("cuda"):
            dtype = torch.get_autocast_dtype("cuda")
            query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
        plain = query.dim() == 4 and query.dtype == key.dtype == value.dtype
        fits = plain and _shapes_fit(query, key, value, enable_gqa) and places == {"cuda"}
        kernel = choose(capability, query.dtype, query.shape[-1], attn_mask is not None)
        if not fits or kernel == "math":
            return original(query, key, value, attn_mask, dropout_p, is_causal, **options)
        if enable_gqa and kernel == "efficient":
            groups = query.shape[1] // key.shape[1]
            key, value = (part.repeat_interleave(groups, 1) for part in (key, value))
        fused: torch.Tensor = _fused(
            kernel, query, key, value, attn_mask, dropout_p, is_causal, scale
        )
        return fused

    return scaled_dot_product_attention


def _shapes_fit(query: Any, key: Any, value: Any, grouped: bool) -> bool:
    """Where they do not, the formula raises what the program would see."""
    heads = query.shape[1] == key.shape[1] or (grouped and query.shape[1] % key.shape[1] == 0)
    return bool(
        heads
        and query.shape[0] == key.shape[0] == value.shape[0]
        and query.shape[-1] == key.shape[-1] == value.shape[-1]
        and key.shape[1:3] == value.shape[1:3]
    )


def _fused(
    kernel: str,
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    dropout: float,
    causal: bool,
    scale: Any,
) -> Any:
    size = query.shape[-1]
    if kernel == "flash":
        padding = -size % 8
        scale = scale if scale is not None else size**-0.5
        if padding:
            pad = torch.nn.functional.pad
            query, key, value = (pad(part, [0, padding]) for part in (query, key, value))
        flash: Any = torch.ops.aten._scaled_dot_product_flash_attention
        result = flash(query, key, value, dropout, causal, False, scale=scale)[0]
        return result[..., :size] if padding else result
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(~mask, float("-inf"))
        mask = mask.expand(*query.shape[:3], key.shape[2])
    gradient = torch.is_grad_enabled() and any(part.requires_grad for part in (query, key, value))
    efficient: Any = torch.ops.aten._scaled_dot_product_efficient_attention
    return efficient(query, key, value, mask, gradient, dropout, causal, scale=scale)[0]
