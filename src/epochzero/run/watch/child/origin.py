"""What the graph of autograd shows of a loss: where one that is no number came from, and what it trains.

The graph is there when a loss is about to be differentiated. Nothing is computed again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

MOST_OPERATORS = 400


def origin(loss: torch.Tensor) -> list[dict[str, Any]]:
    """The operators on the way to the loss that saved what is not finite, or what makes it so.

    Returns:
        For each, the farthest from the loss first: ``operator``, ``depth``, and for each tensor that it
        saved the smallest and largest finite value, and the shares that are zero, negative and not finite.
    """
    seen: set[Any] = set()
    found = []
    level = [loss.grad_fn] if loss.grad_fn is not None else []
    depth = 0
    while level and len(seen) < MOST_OPERATORS:
        following = []
        for node in level:
            if node in seen:
                continue
            seen.add(node)
            saved = _saved(node)
            names = ("nonfinite", "zeros", "negative")
            if any(values[name] > 0 for values in saved.values() for name in names):
                found.append({"operator": type(node).__name__, "depth": depth, "saved": saved})
            following += [n for n, _ in node.next_functions if n is not None]
        level = following
        depth += 1
    return found[::-1][:32]


def _saved(node: Any) -> dict[str, dict[str, float]]:
    found = {}
    for name in dir(node):
        if not name.startswith("_saved_"):
            continue
        try:
            value = getattr(node, name)
        except Exception:
            continue  # changed since, or let go of
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
            flat = value.detach().reshape(-1).float()
            finite = flat[torch.isfinite(flat)]
            found[name.removeprefix("_saved_")] = {
                "min": float(finite.min()) if finite.numel() else 0.0,
                "max": float(finite.max()) if finite.numel() else 0.0,
                "zeros": float((flat == 0).float().mean()),
                "negative": float((flat < 0).float().mean()),
                "nonfinite": 1 - float(torch.isfinite(flat).float().mean()),
            }
    return found


def reaches(value: torch.Tensor, held: Collection[int]) -> bool:
    """Whether gradients of a value reach a tensor with one of these identities, such as those of what optimizers change."""
    level, seen = [value.grad_fn], set[Any]()
    while level and len(seen) < MOST_OPERATORS:
        node = level.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if id(getattr(node, "variable", None)) in held:
            return True
        level += [function for function, _ in node.next_functions]
    return False
