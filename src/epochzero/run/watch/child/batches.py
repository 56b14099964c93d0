"""What is known of a batch: its values, its columns, its rows by a fingerprint, its labels.

A row's fingerprint is the same wherever the row comes again: among the validation data, or in another
batch. Rows are compared, never stored.
"""

from __future__ import annotations

from typing import Any

import torch

from epochzero.run.watch.child.statistics import VALUES, Look, is_readable, values

MOST_TENSORS = 4
MOST_ROWS = 64
MOST_CLASSES = 256
MOST_COLUMNS = 256


def tensors_in(value: Any, name: str = "", depth: int = 0) -> list[tuple[str, torch.Tensor]]:
    """The tensors of arguments, of lists and dictionaries within them, with their names."""
    if isinstance(value, torch.Tensor):
        return [(name, value)] if is_readable(value) and value.numel() else []
    found: list[tuple[str, torch.Tensor]] = []
    if depth < 3:
        if isinstance(value, dict):
            items = [(str(key), item) for key, item in value.items()]
        elif isinstance(value, (list, tuple)):
            items = [(str(number), item) for number, item in enumerate(value)]
        else:
            items = []
        for key, item in items[:16]:
            found += tensors_in(item, f"{name}.{key}" if name else key, depth + 1)
    return found[:MOST_TENSORS]


def inputs(look: Look, batch: Any) -> list[dict[str, Any]]:
    """What each tensor of a batch is like."""
    found = []
    for name, tensor in tensors_in(batch):
        described: dict[str, Any] = {
            "name": name,
            "shape": list(tensor.shape),
            "dtype": str(tensor.dtype).replace("torch.", ""),
        }
        look.add(described, VALUES, values(tensor))
        if tensor.dim() >= 1 and tensor.layout is torch.strided:
            _add_columns(look, described, tensor)
            rows: dict[str, Any] = {}
            described["rows"] = rows
            prints = fingerprints(tensor)
            look.add(rows, [str(n) for n in range(prints.numel())], prints)
        found.append(described)
    return found


def _add_columns(look: Look, described: dict[str, Any], tensor: torch.Tensor) -> None:
    """Of a table, how its columns differ: the smallest and the largest spread, the largest mean."""
    if tensor.dim() != 2 or not tensor.is_floating_point() or tensor.shape[0] < 2:
        return
    table = tensor.detach()[:512, :MOST_COLUMNS].float()
    spread, mean = table.std(0), table.mean(0).abs()
    varies = spread > 0
    smallest = torch.where(varies, spread, torch.full_like(spread, float("inf"))).min()
    numbers = torch.stack(
        [smallest, spread.max(), mean.max(), (~varies).float().mean(), spread.median()]
    )
    names = ("narrowest", "widest", "farthest", "constant_columns", "usual_width")
    look.add(described, names, numbers)


def fingerprints(tensor: torch.Tensor) -> torch.Tensor:
    """A number for each of the first rows, the same for the same values: a fixed weighted sum."""
    rows = tensor.detach()[:MOST_ROWS]
    rows = rows.reshape(rows.shape[0], -1)
    if rows.is_complex():
        rows = rows.abs()
    kind = torch.float32 if rows.device.type == "mps" else torch.float64
    rows = rows[:, :: max(1, rows.shape[1] // 512)].to(kind)
    weights = torch.arange(1, rows.shape[1] + 1, device=rows.device, dtype=kind)
    return (torch.nan_to_num(rows) * (weights * 0.7390851).sin()).sum(1)


def labels(look: Look, target: torch.Tensor) -> dict[str, Any]:
    """What the labels of a batch are like: values; where they are whole numbers, how many of each."""
    described: dict[str, Any] = {
        "shape": list(target.shape),
        "dtype": str(target.dtype).replace("torch.", ""),
    }
    look.add(described, VALUES, values(target))
    flat = target.detach().reshape(-1)[:4096]
    if flat.is_complex():
        return described
    whole = flat if not flat.is_floating_point() else flat.round()
    described["whole"] = bool((whole == flat).all())
    if described["whole"]:
        found, counts = whole.unique(return_counts=True)  # type: ignore[no-untyped-call]
        if found.numel() <= MOST_CLASSES:
            described["classes"] = dict(
                zip((str(int(value)) for value in found.tolist()), counts.tolist(), strict=True)
            )
        changes = (whole[1:] != whole[:-1]).float().mean() if whole.numel() > 1 else None
        described["changes"] = float(changes) if changes is not None else None
    return described


def likeness(batch: torch.Tensor, target: torch.Tensor) -> dict[str, Any]:
    """How often the nearest other example of the batch has the same label, and how often by chance.

    Args:
        batch: examples in the first dimension, numbers.
        target: a whole number for each example.

    Returns:
        ``agreement`` and ``chance``, both 0 to 1; ``pairs``. Empty where nothing can be computed.
    """
    rows = batch.detach()[: 2 * MOST_ROWS]
    if not rows.is_floating_point() or rows.shape[0] < 8 or target.shape[:1] != batch.shape[:1]:
        return {}
    rows = rows.reshape(rows.shape[0], -1)
    rows = rows[:, :: max(1, rows.shape[1] // 1024)].float()
    rows = (rows - rows.mean(0)) / (rows.std(0) + 1e-6)
    distances = torch.cdist(rows, rows)
    distances.fill_diagonal_(float("inf"))
    nearest = distances.argmin(1)
    of = target.detach().reshape(target.shape[0], -1)[: rows.shape[0], 0]
    same = (of[nearest] == of).float().mean()
    _, counts = of.unique(return_counts=True)  # type: ignore[no-untyped-call]
    n = of.numel()
    chance = (counts * (counts - 1)).sum() / (n * (n - 1))
    return {"agreement": float(same), "chance": float(chance), "pairs": n}
