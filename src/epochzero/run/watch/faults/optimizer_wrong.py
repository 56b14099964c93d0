"""An optimizer, or a setting of it, that does not fit the task."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, goes_wrong
from epochzero.run.watch.history import Record, TrainingHistory
from epochzero.run.watch.lines.direction import minimized_terms
from epochzero.run.watch.lines.settings import place_of, setting_place
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Settings far from any that works: they need no effect to be doubted, and one to be sure."""
    bad = course(history) is not None and goes_wrong(history)
    rises_rightly = any(minimized_terms(history))
    for record in history.optimizers:
        for group in record.get("groups", ())[:1]:
            for keyword, text, fix in _doubts(record["class"], group, _is_in_batches(history)):
                if keyword == "maximize" and rises_rightly:
                    continue
                yield TrainingFinding(
                    "optimizer_wrong",
                    0,
                    f"{record['class']} has {text}.",
                    place=setting_place(place_of(record), keyword),
                    confidence=0.88 if bad else 0.4,
                    fix=fix,
                )  # fmt: skip


def _is_in_batches(history: TrainingHistory) -> bool:
    """Whether an iteration is of a part of the data."""
    if history.loaders:
        return any(
            (loader["examples"] or 0) > (loader["batch_size"] or 1) for loader in history.loaders
        )
    rows = [it.inputs[0].get("rows", ()) for it in history.iterations[:8] if it.inputs]
    return any(row != rows[0] for row in rows)


def _doubts(kind: str, group: Record, in_batches: bool) -> Iterable[tuple[str, str, str]]:
    if group.get("maximize"):
        yield "maximize", "maximize=True, so it increases the loss", "Remove maximize=True."
    if kind == "Rprop" and in_batches:
        yield (
            "params",
            "uses the sign of full-batch gradients, but receives mini-batches",
            "Take Adam.",
        )
    momentum = group.get("momentum")
    if isinstance(momentum, int | float) and momentum >= 0.98:
        yield (
            "momentum",
            f"a momentum of {momentum:g}: updates accumulate over hundreds of steps",
            "Take 0.9.",
        )
    eps = group.get("eps")
    if isinstance(eps, int | float) and kind.lower().startswith(
        ("adam", "nadam", "radam", "rmsprop")
    ):
        if eps >= 0.01:
            yield "eps", f"an epsilon of {eps:g}, larger than most gradients", "Take 1e-8."
        elif 0 <= eps < 1e-12:
            yield (
                "eps",
                f"an epsilon of {eps:g}: small gradients are divided by almost zero",
                "Take 1e-8.",
            )
    betas = group.get("betas")
    if isinstance(betas, list | tuple) and len(betas) == 2:
        if betas[0] >= 0.98:
            yield "betas", f"a beta1 of {betas[0]:g}: old gradients dominate", "Take 0.9."
        elif betas[1] < 0.8 or betas[1] <= betas[0] - 0.3:
            yield "betas", f"a beta2 of {betas[1]:g}: step sizes are unstable", "Take 0.999."
    alpha = group.get("alpha")
    if kind == "RMSprop" and isinstance(alpha, int | float) and alpha < 0.5:
        yield "alpha", f"an alpha of {alpha:g}: step sizes are unstable", "Take 0.99."
