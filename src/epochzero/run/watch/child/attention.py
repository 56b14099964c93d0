"""Where the weights of an attention lie: on positions after the own one, and on padding.

A fused attention does not give its weights; they are computed again for a few examples of an inspected iteration.
"""

from __future__ import annotations

from typing import Any

import torch

from epochzero.run.watch.child.statistics import number_in

_MOST_EXAMPLES, _MOST_POSITIONS = 4, 256
_LEAST_POSITIONS = 4


def weights(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    **_: Any,
) -> torch.Tensor | None:
    """The weights of `torch.nn.functional.scaled_dot_product_attention` for its first examples; None where that is much.

    Args:
        query, key, value, attn_mask, dropout_p, is_causal, scale: as of that function.
    """
    if key.dim() < 3 or max(query.shape[-2], key.shape[-2]) > _MOST_POSITIONS:
        return None
    examples = query.shape[0]
    query, key = query.detach()[:_MOST_EXAMPLES].float(), key.detach()[:_MOST_EXAMPLES].float()
    if query.shape[1:-2] != key.shape[1:-2]:
        return None  # Grouped queries.
    scores = query @ key.transpose(-1, -2) * (scale or query.shape[-1] ** -0.5)
    if attn_mask is not None:
        mask = attn_mask.detach()
        if mask.dim() == scores.dim() and mask.shape[0] == examples:
            mask = mask[:_MOST_EXAMPLES]
        is_choice = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, float("-inf")) if is_choice else scores + mask.float()
    if is_causal:
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(ahead, float("-inf"))
    return torch.nan_to_num(scores.softmax(-1))


def masses(found: torch.Tensor, inputs: list[torch.Tensor]) -> dict[str, float]:
    """How weights are distributed.

    Args:
        found: of shape (examples or examples * heads, ..., queries, keys), or (examples, keys) where words are pooled.
        inputs: of the model; tokens of shape (examples, keys) show which keys are padding.

    Returns:
        ``future``: the mean weight of keys after the query, if there are as many keys as queries.
        ``padding``: the mean weight of keys that are padding, for queries that are none, and ``padded``, their share.
    """
    keys, described = found.shape[-1], dict[str, float]()
    few = found.detach()[:_MOST_EXAMPLES].float()
    if found.dim() == 2:
        return _pooled(found.detach().float(), inputs)
    if found.shape[-2] == keys >= _LEAST_POSITIONS:
        described["future"] = number_in(few.triu(1).sum(-1).mean())
    for tokens in inputs:
        padded = padding(tokens) if tokens.dim() == 2 and tokens.shape[1] == keys else None
        is_of_examples = len(found) in (len(tokens), min(len(tokens), _MOST_EXAMPLES))
        if padded is not None and is_of_examples and found.shape[-2] == keys:
            at = padded[: len(few)].reshape(len(few), *[1] * (few.dim() - 2), keys)
            asks = (~at).transpose(-1, -2).expand_as(few[..., :1])
            each = (few * at).sum(-1, keepdim=True)
            counted = asks & at.any(-1, keepdim=True)
            if bool(counted.any()):
                described["padding"] = number_in(each[counted].mean())
                described["padded"] = number_in(at.float().mean())
            break
    return described


def _pooled(found: torch.Tensor, inputs: list[torch.Tensor]) -> dict[str, float]:
    """The mass on padding of weights with which the words of each example are added up."""
    for tokens in inputs:
        padded = padding(tokens) if tokens.shape == found.shape else None
        if padded is not None:
            each = (found * padded).sum(1)[padded.any(1)]
            mass, share = number_in(each.mean()), number_in(padded.float().mean())
            return {"padding": mass, "padded": share}
    return {}


def padding(tokens: torch.Tensor) -> torch.Tensor | None:
    """Which positions of rows of tokens are padding at the ends of rows; None where that is unknown.

    Padding is a value that fills the ends of rows of several lengths, and occurs nowhere else.
    """
    if tokens.is_floating_point() or tokens.shape[0] < 4 or tokens.shape[1] < 3:
        return None
    value = tokens[:, -1].mode().values
    same = tokens == value
    tails = same.flip(1).long().cumprod(1).flip(1).bool()
    lengths = tails.sum(1)
    inside = bool((same & ~tails).any())
    several = lengths.unique().numel() >= 3  # type: ignore[no-untyped-call]
    return None if inside or int(lengths.max()) < 3 or not several else tails
