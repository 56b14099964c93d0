"""Enables activation checkpointing of a model's repeated blocks without changes to the model.

Source: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016; torch's documentation,
``torch.utils.checkpoint``, non-reentrant variant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import wraps
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def repeated_blocks(model: nn.Module) -> list[nn.Module]:
    """Return the outermost modules that are in a list or sequence with others of their class."""
    found: list[nn.Module] = []
    for child in model.children():
        blocks = _blocks_of(child)
        found += blocks or repeated_blocks(child)
    return _blocks_of(model) or found


def _blocks_of(module: nn.Module) -> list[nn.Module]:
    if not isinstance(module, nn.ModuleList | nn.Sequential):
        return []
    composed = [child for child in module if any(True for _ in child.children())]
    counts = Counter(map(type, composed))
    return [child for child in composed if counts[type(child)] > 1]


@contextmanager
def checkpointed(blocks: Sequence[nn.Module]) -> Iterator[None]:
    """Within ``with``, the blocks store only their inputs and recompute the rest in backward."""
    with ExitStack() as stack:
        for block in blocks:
            own = block.__dict__.get("forward")
            block.forward = _again_in_backward(block, block.forward)
            if own is None:
                stack.callback(block.__dict__.pop, "forward")
            else:
                stack.callback(setattr, block, "forward", own)
        yield


def _again_in_backward(block: nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
    def contexts() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
        return nullcontext(), _buffers_kept(block)

    @wraps(forward)
    def checkpointed_forward(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, use_reentrant=False, context_fn=contexts, **kwargs)

    return checkpointed_forward


@contextmanager
def _buffers_kept(block: nn.Module) -> Iterator[None]:
    """Let the recomputation update copies of the buffers, so that batch norm does not count a batch twice.

    The graph of the first pass refers to the buffers themselves, so they cannot be restored in place.
    """
    kept = [(module, dict(module._buffers)) for module in block.modules() if module._buffers]
    for module, buffers in kept:
        for name, buffer in buffers.items():
            module._buffers[name] = None if buffer is None else buffer.detach().clone()
    try:
        yield
    finally:
        for module, buffers in kept:
            module._buffers.update(buffers)
