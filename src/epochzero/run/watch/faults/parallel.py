"""What ranks that compute one model together must share, and what data-parallel ranks must not keep to themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from epochzero.run.watch.faults._signals import evaluations, examples_in, first_inputs, rows_of
from epochzero.run.watch.faults._table import SHARE, Row, Sign, percent
from epochzero.run.watch.faults.ranks import MOMENTS, differing, differs_at_start, moments_of
from epochzero.run.watch.history import (
    EvaluationPass,
    Iteration,
    ModelLayer,
    Record,
    TrainingHistory,
)
from epochzero.run.watch.lines.data import split_place
from epochzero.run.watch.lines.layers import wrapping_place
from epochzero.run.watch.lines.loss import loss_place
from epochzero.run.watch.lines.settings import place_of

_SAME_LOSS = 1e-3
"""Relative: a sum over ranks may be rounded otherwise."""
_APART, _DEVIATIONS = 0.5, 6.0
"""Standard deviations of the examples, and of what chance makes of equal data in small batches, between two running means."""
_FEWEST = 16
_TRAINED_ON = 0.1
"""Of the examples of one rank's evaluation. Only some of the examples of a training are recorded; a split has none in common."""


def _partners(history: TrainingHistory, moment: Sequence[Iteration]) -> list[int]:
    """The places in a moment of the ranks that compute the model of the first rank together; empty without them.

    Along a dimension of the mesh that splits the data, all parameters are spread alike. Along one that splits the model, they
    are not: columns of one layer, rows of the next, copies of a bias.
    """
    spread: list[Record] = [
        of["sharded"] for of in moment[0].parameters.values() if "sharded" in of
    ]
    most = max((len(of["placements"]) for of in spread if "ranks" in of), default=0)
    spread = [of for of in spread if len(of["placements"]) == most and "ranks" in of]
    split = [n for n in range(most) if len({str(of["placements"][n]) for of in spread}) > 1]
    if not split:
        return []
    ranks = np.array(spread[0]["ranks"])
    first = np.argwhere(ranks == 0)
    if not len(first):
        return []
    own = tuple(slice(None) if n in split else int(first[0][n]) for n in range(most))
    partners = set(ranks[own].ravel().tolist())
    numbers = [0, *(rank for rank, of in sorted(history.ranks.items()) if of.count)]
    return [place for place, rank in enumerate(numbers) if rank in partners]


def _partners_differ(history: TrainingHistory) -> Sign | None:
    """Ranks that compute one model together have other batches, or other losses of the same batches."""
    moments = moments_of(history)
    partners = _partners(history, moments[0]) if len(moments) >= MOMENTS else []
    if len(partners) < 2:
        return None
    least = max(MOMENTS, SHARE * len(moments))
    together = f"{len(partners)} ranks compute one model together"
    apart = [
        m[0].number
        for m in moments
        if len({tuple(sorted(rows_of(m[place]))) for place in partners}) > 1
    ]
    if len(apart) >= least:
        loader = next(map(place_of, history.loaders), None)
        text = f"{together}, but read different batches from iteration {apart[0]} on: each must read the same."
        return Sign(text, loader or loss_place(history), apart[0])
    losses = _losses(history, partners)
    apart = [m[0].number for m in moments if _is_apart(losses, m[0].number)]
    if len(apart) < least:
        return None
    whole = [
        name
        for name in differs_at_start(history)
        if "sharded" not in moments[0][0].parameters.get(name, {})
    ]
    layer = history.layer(whole[0].rpartition(".")[0]) if whole else None
    reason = (
        f"{whole[0]}, which each of them holds in full, differs from the start"
        if whole
        else "each rank draws its own random numbers in it, such as a dropout on shared values"
    )
    text = f"{together}, but get different losses of the same batch from iteration {apart[0]} on: {reason}."
    return Sign(text, (layer.place if layer else None) or loss_place(history), apart[0])


def _losses(history: TrainingHistory, partners: Sequence[int]) -> list[Mapping[int, float]]:
    ranks = [history, *(of for _, of in sorted(history.ranks.items()) if of.count)]
    return [
        dict(zip(ranks[p].loss[:, 0].astype(int), ranks[p].loss[:, 1], strict=True))
        for p in partners
    ]


def _is_apart(losses: Sequence[Mapping[int, float]], number: int) -> bool:
    values = [loss[number] for loss in losses if np.isfinite(loss.get(number, np.nan))]
    return len(values) > 1 and np.ptp(values) > _SAME_LOSS * max(map(abs, values))


def _statistics_differ(history: TrainingHistory) -> Sign | None:
    """Normalizations over the batch have gathered the statistics of other data on each rank."""
    moments = moments_of(history)[-MOMENTS:]
    if len(moments) < MOMENTS:
        return None
    for name in moments[-1][0].statistics:
        layer = history.layer(name)
        distances = [
            _distance([it.statistics.get(name, {}) for it in moment]) for moment in moments
        ]
        if layer and min(distances) > max(_APART, _DEVIATIONS * _by_chance(moments[-1][0], layer)):
            text = (
                f"The running mean of {name} differs between the ranks by {distances[-1]:.2g} standard deviations: each rank computes "
                "it from its own examples, which are not alike, and only that of one rank is stored."
            )
            place = wrapping_place(history) or layer.place
            return Sign(text, place, moments[0][0].number, name)
    return None


def _distance(ranks: Sequence[Mapping[str, float]]) -> float:
    """How far the means of a feature are apart between the first rank and another, at most, in standard deviations."""
    first = ranks[0]
    names = [name for name in first if name.startswith("mean") and all(name in of for of in ranks)]
    return max(
        (
            abs(of[name] - first[name])
            / max(np.median([each[f"variance{name[4:]}"] for each in ranks]), 1e-12) ** 0.5
            for of in ranks[1:]
            for name in names
        ),
        default=0.0,
    )


def _by_chance(iteration: Iteration, layer: ModelLayer) -> float:
    """The standard deviation of the difference of two running means of examples that are alike, in that of an example."""
    examples = next((tensor["shape"][0] for tensor in iteration.inputs if tensor["shape"]), 1)
    momentum = float(layer.settings.get("momentum") or 0.1)
    return float((2 * momentum / (2 - momentum) / max(examples, 1)) ** 0.5)


def _validated_elsewhere(history: TrainingHistory) -> Sign | None:
    """What one rank measures, and does not train on, another rank of the same model trains on."""
    moments = moments_of(history)
    if not moments or differing(moments[-1], "weight"):
        return None
    measured = _examples(evaluations(history))
    if len(measured) < _FEWEST or len(measured & _examples(history.iterations)) > 0.02 * len(
        measured
    ):
        return None
    for rank, of in history.ranks.items():
        share = len(measured & _examples(of.iterations)) / len(measured)
        if share > _TRAINED_ON:
            text = (
                f"Rank {rank} trains on at least {percent(share)} of the examples that rank 0 evaluates: the ranks have split "
                "the examples differently."
            )
            return Sign(text, split_place(history), evaluations(history)[0].iteration)
    return None


def _examples(scenes: Iterable[Iteration | EvaluationPass]) -> set[str]:
    return {row for tensor in first_inputs(scenes) for row in examples_in(tensor)}


RELATIONS: Sequence[Row] = (
    Row("ranks_differ", _partners_differ, 0.94,
        "Seed the random numbers of ranks that share a model, and the parameters that each of them holds in full, by position in "
        "the data-parallel mesh, not by rank."),
    Row("ranks_differ", _statistics_differ, 0.9,
        "Let DistributedDataParallel broadcast buffers (broadcast_buffers=True), use SyncBatchNorm, or shuffle before sharding."),
    Row("data_leaked", _validated_elsewhere, 0.92, "Split with a generator that has the same seed on all ranks."),
)  # fmt: skip
CURVES: Sequence[Row] = ()
