"""What differs between the ranks of one training, and should not, and what does not differ, and should."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from epochzero.run.watch.faults._signals import rows_of
from epochzero.run.watch.faults._table import SHARE, Row, Sign
from epochzero.run.watch.history import Iteration, Record, TrainingHistory
from epochzero.run.watch.lines.layers import wrapping_place
from epochzero.run.watch.lines.loss import loss_place
from epochzero.run.watch.lines.settings import place_of
from epochzero.run.watch.lines.training import backward_place, step_place
from epochzero.run.watch.model import EvidenceKind, SourceLine

_EQUAL = 1e-5
MOMENTS = 2
_SAME_BATCHES = 3
_LABELS = 4
"""Different labels in a batch: fewer come in the same order by chance."""


def moments_of(history: TrainingHistory) -> list[list[Iteration]]:
    """The iterations that all ranks have inspected, each as seen by the ranks in their order."""
    ranks = [history, *(of for _, of in sorted(history.ranks.items()) if of.count)]
    if len(ranks) < 2:
        return []
    moments = _in_step(ranks, [0] * len(ranks))
    if all(of.ended for of in ranks):
        # A rank may train alone before, such as the model whose checkpoint all ranks load.
        ends = _in_step(ranks, [of.count for of in ranks])
        moments = ends if ends and not differing(ends[-1], "weight") else moments
    return moments if _is_one_model(ranks, moments) else []


def _in_step(ranks: Sequence[TrainingHistory], origins: Sequence[int]) -> list[list[Iteration]]:
    """The iterations with the same number on all ranks, counted from an origin of each."""
    numbered = [
        {iteration.number - origin: iteration for iteration in of.iterations}
        for of, origin in zip(ranks, origins, strict=True)
    ]
    common = set(numbered[0]).intersection(*numbered[1:])
    return [[of[number] for of in numbered] for number in sorted(common)]


def _is_one_model(ranks: Sequence[TrainingHistory], moments: Sequence[Sequence[Iteration]]) -> bool:
    """Whether the ranks train the same model and not, for example, stages of a pipeline, whose layers may have equal names."""
    shapes: dict[str, set[Sequence[int]]] = {}
    for of in ranks:
        for parameter in of.parameters:
            shapes.setdefault(parameter.name, set()).add(parameter.shape)
    functions = [{iteration.loss_function for iteration in moment} for moment in moments]
    return all(len(of) == 1 for of in shapes.values()) and (
        not moments or min(map(len, functions)) == 1
    )


def _differ(values: Sequence[float]) -> bool:
    finite = [value for value in values if np.isfinite(value)]
    return bool(finite) and max(finite) - min(finite) > _EQUAL * max(map(abs, finite))


def differing(moment: Sequence[Iteration], what: str) -> list[str]:
    """Names of whole parameters that all ranks have and whose weight or gradient differs; a missing one counts as 0."""
    found = []
    for name, of in moment[0].parameters.items():
        each = [iteration.parameters[name] for iteration in moment if name in iteration.parameters]
        if (
            "sharded" not in of
            and len(each) == len(moment)
            and _differ([_described(values, what).get("rms", 0.0) for values in each])
        ):
            found.append(name)
    return found


def _described(values: Record, what: str) -> Record:
    """What is known of a weight or gradient; of a weight before the step, since the program may average weights after it."""
    found: Record = (values.get("before") if what == "weight" else None) or values.get(what, {})
    return found


def _met_again(apart: Sequence[Sequence[str]]) -> set[str]:
    """Names that were apart and were equal later: local SGD averages parameters every few steps."""
    return {
        name for before, after in itertools.pairwise(apart) for name in before if name not in after
    }


def _moved_between_steps(moments: Sequence[Sequence[Iteration]]) -> set[str]:
    """Names of parameters that the program itself changes between two steps, as it does to mix those of several ranks."""
    pairs = [
        (before, after)
        for one, other in itertools.pairwise(moments)
        if other[0].number == one[0].number + 1
        for before, after in zip(one, other, strict=True)
    ]
    return {
        name
        for before, after in pairs
        for name in before.parameters.keys() & after.parameters.keys()
        if "before" in after.parameters[name]
        and _differ([
            before.parameters[name].get("weight", {}).get("rms", 0.0),
            after.parameters[name]["before"].get("rms", 0.0),
        ])
    }  # fmt: skip


def differs_at_start(history: TrainingHistory) -> list[str]:
    """Names of parameters that differ between the ranks when the training begins."""
    others = [{p.name: p for p in of.parameters} for of in history.ranks.values()]
    return [
        p.name
        for p in history.parameters
        if _differ([p.values.get("rms", 0.0), *(of[p.name].values.get("rms", 0.0) for of in others if p.name in of)])
    ]  # fmt: skip


def _ranks_differ(history: TrainingHistory) -> Sign | None:
    """The ranks of one training have different parameters, and why."""
    moments = moments_of(history)
    if len(moments) < MOMENTS:
        return None
    for test in (_different_steps, _different_counts, _different_rates, _different_parameters):
        found = test(history, moments)
        if found is not None:
            return found
    return None


def _different_steps(
    history: TrainingHistory, moments: Sequence[Sequence[Iteration]]
) -> Sign | None:
    counted: tuple[tuple[str, Callable[[Iteration], int], SourceLine | None], ...] = (
        ("optimizer steps", lambda iteration: iteration.stepped, step_place(history)),
        ("backward passes", lambda i: sum(i.backwards.values()), backward_place(history)),
    )
    for what, count, place in counted:
        apart = [(m[0].number, [count(iteration) for iteration in m]) for m in moments]
        apart = [(number, counts) for number, counts in apart if len(set(counts)) > 1]
        if len(apart) >= max(MOMENTS, 0.3 * len(moments)):
            number, counts = apart[0]
            text = f"In iteration {number} the ranks have {_listed(counts)} {what}."
            return Sign(text, place, number)
    return None


def _different_counts(
    history: TrainingHistory, moments: Sequence[Sequence[Iteration]]
) -> Sign | None:
    """Of ranks that have ended with different parameters, some have left steps out."""
    ranks = [history, *(of for _, of in sorted(history.ranks.items()) if of.count)]
    counts = [of.count for of in ranks]
    apart = differing(moments[-1], "weight")
    if not apart or len(set(counts)) == 1 or not all(of.ended for of in ranks):
        return None
    text = f"The ranks have trained {_listed(counts)} iterations, and {apart[0]} differs between them: some have skipped steps."
    return Sign(text, step_place(history), moments[-1][0].number)


def _different_rates(
    history: TrainingHistory, moments: Sequence[Sequence[Iteration]]
) -> Sign | None:
    # A rank may hold a second optimizer with the same rate.
    apart = [m for m in moments if len({frozenset(iteration.rates) for iteration in m}) > 1]
    if len(apart) < MOMENTS or apart[-1] is not moments[-1]:
        return None
    rates = [max(iteration.rates, default=0.0) for iteration in apart[0]]
    text = (
        f"In iteration {apart[0][0].number} the learning rates of the ranks are {_listed(rates)}."
    )
    begins = apart[0] is moments[0]
    place = next(map(place_of, history.optimizers if begins else history.schedulers), None)
    return Sign(text, place or step_place(history), apart[0][0].number)


def _different_parameters(
    history: TrainingHistory, moments: Sequence[Sequence[Iteration]]
) -> Sign | None:
    apart = [differing(moment, "weight") for moment in moments]
    averaged = _met_again(apart) | _moved_between_steps(moments)
    apart = [[name for name in names if name not in averaged] for names in apart]
    if not all(apart[-MOMENTS:]):
        return None
    started = differs_at_start(history)
    gradients = [
        [name for name in differing(moment, "gradient") if name not in averaged]
        for moment in moments
    ]
    reduced = sum(map(bool, gradients)) < 0.5 * len(gradients)
    since = moments[next(n for n, names in enumerate(apart) if names)][0].number
    evidence: dict[str, float | str] = {
        "parameters": float(len(apart[-1])),
        "ranks": float(len(moments[0])),
    }
    name = apart[-1][0]
    if started and reduced:
        text = (
            f"{started[0]} differs between ranks from the start, as do {len(started) - 1} others, though gradients are the same: "
            "it was not broadcast after it was changed."
        )
        layer = history.layer(started[0].rpartition(".")[0])
        place = wrapping_place(history) or (layer.place if layer else None)
        return Sign(text, place, since, evidence=evidence)
    if started:
        # Each rank of a model that is split has its own parameters, and the same batch.
        if _same_batches(moments):
            return _drifting(history, moments, since, set(apart[-1]) - set(started))
        if _are_whole_models(history, apart[-1]):
            return None
        text = (
            f"{name} and {len(apart[-1]) - 1} other parameters differ between ranks from the start, and so do their gradients: "
            "each rank trains a model of its own."
        )
        return Sign(text, step_place(history), since, evidence=evidence, weaker=0.1)
    if not reduced:
        names = next(filter(None, gradients))
        missing = [
            rank
            for rank, iteration in enumerate(
                next(m for m, g in zip(moments, gradients, strict=True) if g)
            )
            if "gradient" not in iteration.parameters.get(names[0], {})
        ]
        text = (
            f"{names[0]} has no gradient on rank {missing[0]}: the ranks train different models."
            if missing
            else f"The gradients of {names[0]} and {len(names) - 1} other parameters are not averaged over the ranks."
        )
        return Sign(text, step_place(history), since, evidence=evidence)
    text = (
        f"{name} and {len(apart[-1]) - 1} other parameters differ between ranks from iteration {since} on, though gradients are the "
        "same: the settings of the optimizers differ, or the ranks change gradients after averaging them."
    )
    return Sign(text, next(map(place_of, history.optimizers), None), since, evidence=evidence)


def _are_whole_models(history: TrainingHistory, apart: Sequence[str]) -> bool:
    """Whether what is apart are whole models, and no other model has any of it: each rank may hold its own experts."""
    models: dict[bool, set[int]] = {True: set(), False: set()}
    for parameter in history.parameters:
        layer = history.layer(parameter.layer)
        models[parameter.name in apart].add(layer.model if layer else 0)
    return bool(models[True] and models[False]) and not models[True] & models[False]


def _own_models(history: TrainingHistory) -> Sign | None:
    """Whole models differ between the ranks from the start, and others are equal."""
    moments = moments_of(history)
    apart = differing(moments[-1], "weight") if len(moments) >= MOMENTS else []
    if not apart or not differs_at_start(history) or not _are_whole_models(history, apart):
        return None
    text = (
        f"{apart[0]} and {len(apart) - 1} other parameters, those of whole models, differ between ranks from the start; those of the other "
        "models do not."
    )
    return Sign(text, step_place(history), moments[0][0].number)


def _drifting(
    history: TrainingHistory, moments: Sequence[Sequence[Iteration]], since: int, apart: set[str]
) -> Sign | None:
    """Of ranks that split a model by hand, and read the same batches, parameters that all of them have drift apart."""
    # A bias of a part that is split is 0 on all ranks at the start.
    whole = [p.name for p in history.parameters if p.values.get("std", 0.0) > 0]
    name = next((name for name in whole if name in apart), None)
    if name is None:
        return None
    text = (
        f"The ranks split a model and read the same batches, but {name}, which is the same on all of them at the start, drifts apart: "
        "a partial output or gradient is not added, or each rank draws its own random numbers, such as those of dropout."
    )
    return Sign(text, loss_place(history), since)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _same_batches(moments: Sequence[Sequence[Iteration]]) -> bool:
    """Whether all ranks have the same examples in each iteration, and not the same in all of them.

    Augmentation that each rank draws makes their inputs differ; the order of their labels is then the same.
    """
    return _are_same([[tuple(sorted(rows_of(it))) for it in moment] for moment in moments], 2) or (
        _are_same([[tuple(it.row_labels) for it in moment] for moment in moments], _LABELS)
    )


def _are_same(batches: Sequence[Sequence[tuple[object, ...]]], fewest: int) -> bool:
    """Whether batches of so many different items are the same on all ranks, and not the same in all iterations."""
    batches = [of for of in batches if all(len(set(items)) >= fewest for items in of)]
    same = [of[0] for of in batches if len(set(of)) == 1]
    return len(same) >= _SAME_BATCHES and len(same) >= SHARE * len(batches) and len(set(same)) > 1


def _ranks_repeat_data(history: TrainingHistory) -> Sign | None:
    """All ranks of a data-parallel training read the same batches."""
    moments = moments_of(history)
    if not moments or not _same_batches(moments):
        return None
    sharded = [
        of["sharded"] for i in moments[0][:1] for of in i.parameters.values() if "sharded" in of
    ]
    by_data = all(of.get("dimensions") == 1 for of in sharded) and any(
        layer.kind.startswith("FSDP") for layer in history.layers
    )
    if by_data if sharded else not differs_at_start(history):
        text = f"All {len(moments[0])} ranks read the same examples in each iteration: more ranks add nothing."
        loader = next(map(place_of, history.loaders), None)
        return Sign(text, loader or loss_place(history))
    return None


def _input_of_one_rank(history: TrainingHistory) -> Sign | None:
    """The inputs of one rank are constant, those of the others are not."""
    moments = [m for m in moments_of(history) if all(iteration.inputs for iteration in m)]
    numbers = [0, *(rank for rank, of in sorted(history.ranks.items()) if of.count)]
    for place, rank in enumerate(numbers if len(moments) >= _SAME_BATCHES else ()):
        constant = [
            m[0].number
            for m in moments
            if m[place].inputs[0]["std"] == 0
            and all(it.inputs[0]["std"] > 0 for n, it in enumerate(m) if n != place)
        ]
        if len(constant) >= max(_SAME_BATCHES, SHARE * len(moments)):
            value = moments[-1][place].inputs[0]["mean"]
            text = f"All inputs of rank {rank} are {value:g}, those of the other ranks are not."
            loader = next(map(place_of, history.loaders), None)
            return Sign(text, loader or loss_place(history), constant[0])
    return None


def _epoch_not_set(history: TrainingHistory) -> Sign | None:
    """The sampler of a distributed training shuffles all epochs alike."""
    epochs: dict[int, list[Record]] = {}
    for epoch in history.epochs:
        if epoch.get("shuffles") and epoch.get("epoch") is not None:
            epochs.setdefault(epoch["loader"], []).append(epoch)
    for number, records in epochs.items():
        if len(records) >= 3 and len({record["epoch"] for record in records}) == 1:
            text = f"set_epoch is never called: in each of {len(records)} epochs the sampler shuffles the examples in the same way."
            loader = next((x for x in history.loaders if x.get("number") == number), None)
            return Sign(text, place_of(loader) if loader else None)
    return None


_SAME = "Wrap the model in DistributedDataParallel and call the wrapper, or broadcast parameters once and average all gradients before each step."
RELATIONS: Sequence[Row] = (
    Row("ranks_differ", _ranks_differ, 0.95, _SAME),
    Row("ranks_differ", _own_models, 0.85, _SAME, kind=EvidenceKind.STATE),
    Row("ranks_repeat_data", _ranks_repeat_data, 0.94, "Give the loader a DistributedSampler of this rank, or seed the draw of batches by rank."),
    Row("input_invalid", _input_of_one_rank, 0.94, "Inspect the files and the transfer that this rank reads from."),
    Row("not_shuffled", _epoch_not_set, 0.9, "Call sampler.set_epoch(epoch) before each epoch."),
)  # fmt: skip
CURVES: Sequence[Row] = ()
