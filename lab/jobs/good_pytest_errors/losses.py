import logging
import torch

log = logging.getLogger("losses")


def focal(logits, target, gamma=2.0):
    if logits.shape != target.shape:
        raise RuntimeError(f"shape mismatch: {tuple(logits.shape)} and {tuple(target.shape)}")
    if gamma < 0:
        raise ValueError("gamma must not be negative")
    p = torch.sigmoid(logits)
    loss = torch.where(target > 0, -((1 - p) ** gamma) * p.log(), -(p**gamma) * (1 - p).log())
    if not torch.isfinite(loss).all():
        log.error("loss is not finite, replaced by zero")
        loss = torch.nan_to_num(loss, 0.0, 0.0, 0.0)
    return loss.mean()
