"""The records of a watched training as series and tables, which the faults are read from.

A record that is damaged, or of a kind that is not known, is passed over: a job may be killed while it
writes, and a newer version may write more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from epochzero.run.watch.child.records import MOST_RANKS, rank_path
from epochzero.run.watch.model import SourceLine

Record = Mapping[str, Any]
Series = npt.NDArray[np.float64]
"""Rows of iteration and value."""
_VALUES = ("rms", "largest", "zeros", "nonfinite", "mean", "std")
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True, slots=True)
class ModelLayer:
    """A layer of a model, as it was made.

    Attributes:
        path: within its model; of a second model with its name before it.
        kind: its class, such as ``Linear``.
        settings: numbers that it was made with.
        place: the line that made it.
        leaf: whether it has no layers of its own.
        called: whether it was called.
        parameters: names of its own.
        model: number of its model.
        hidden: whether the model that calls it does not know it.
    """

    path: str
    kind: str
    settings: Mapping[str, Any]
    place: SourceLine | None
    leaf: bool
    called: bool
    parameters: tuple[str, ...]
    model: int
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, as it was at the end of the first iteration: before much was learned.

    Attributes:
        name, layer: its path, and that of its layer.
        shape: its sizes.
        trainable: whether it asks for gradients.
        held: whether an optimizer holds it.
        thawed: whether it did not ask for gradients at some time, and does now.
        values: rms, largest, zeros, nonfinite, mean, std.
    """

    name: str
    layer: str
    shape: tuple[int, ...]
    trainable: bool
    held: bool
    values: Mapping[str, float]
    thawed: bool = False


@dataclass(frozen=True, slots=True)
class TrainingCall:
    """A call of a cycle.

    Attributes:
        kind: backward, clear, clip, loss, schedule, step, unscale.
        subject: number of the optimizer or schedule.
        line: ``path:line``.
        flag: of a backward pass ``scaled``; of a step ``scaler``, ``skipped`` or ``repeated``, if it has computed gradients several
            times; of a loss its function and reduction; of a
            clipping its function.
        value: of a loss or a backward pass, where read; the limit of a clipping.
    """

    kind: str
    subject: int
    line: str
    flag: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Cycle:
    """The calls from the first forward call or backward pass of an iteration to that of the next, in their order."""

    number: int
    calls: tuple[TrainingCall, ...]


@dataclass(frozen=True, slots=True)
class Iteration:
    """An iteration that was looked at.

    Attributes:
        number: 0 for the first.
        training: the mode of the model.
        rates: learning rates of all groups of all optimizers.
        unread: name -> number that the program has given to optimizers, which do not read it; of an attribute ``.name``.
        backwards: line of the call -> how many backward passes.
        stepped: how many optimizers stepped.
        before: of a parameter of each optimizer, ``name`` and what was ``left`` of earlier gradients when
            a backward pass began, the least of the iteration.
        parameters: name -> weight, gradient, update -> rms, largest, zeros, nonfinite.
        layers: path (of a function ``path:relu``) -> statistics of its output.
        inputs: of each tensor given to the model; those that hold one value only come last.
        output, target: of what the loss was given.
        loss_function: its name in `torch.nn.functional`; empty where it is none of these.
        accuracy: share of right classes in the batch; None where there are none.
        likeness: how often the nearest example has the same label.
        row_labels: label of each of the first rows; ``inputs[0]["rows"]`` has their fingerprints.
        modes: layers whose mode differs from the model's.
        scalars: numbers that the program has read: ``name``, ``line``, ``text``, ``count``, ``mean``, ``last``.
        clippings: of gradients: ``line``, ``limit``, ``norm``.
        skipped_steps: how many steps the scaler of gradients left out.
        loader: number of the loader that was begun last; None where there is none.
        values: of tensors that the user has chosen, by name: mean, std, min, max, zeros, nonfinite,
            p5, p25, p50, p75, p95.
        direct: whether the loss was given the output of the model or of one of its layers as it was.
        relations: between the target and the inputs and output, as of `epochzero.run.watch.child.relations`.
        softmaxes: ``function``, ``dim``, ``shape``, ``layer`` and ``place`` of each in the forward pass.
        others: a fingerprint of each parameter that no optimizer holds.
        unheld: parameters that have a gradient and that no optimizer holds.
        statistics: of one of several ranks, ``mean0``, ``variance0`` and so on that normalizations over the batch have gathered.
        scheduled: how often each schedule was stepped so far.
        model: the path of what was called first: the number of its model before the slash.
    """

    number: int
    training: bool | None
    rates: tuple[float, ...]
    backwards: Mapping[str, int]
    stepped: int
    before: Mapping[str, Record]
    parameters: Mapping[str, Mapping[str, Mapping[str, float]]]
    layers: Mapping[str, Mapping[str, Any]]
    inputs: Sequence[Record]
    output: Record
    target: Record
    loss_function: str
    accuracy: float | None
    likeness: Record
    row_labels: tuple[int, ...]
    modes: Mapping[str, bool]
    scalars: Sequence[Record] = ()
    clippings: Sequence[Record] = ()
    skipped_steps: int = 0
    loader: int | None = None
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    direct: bool = False
    relations: Record = field(default_factory=dict)
    softmaxes: Sequence[Record] = ()
    others: Mapping[str, float] = field(default_factory=dict)
    unheld: frozenset[str] = frozenset()
    statistics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    scheduled: tuple[int, ...] = ()
    unread: Mapping[str, float] = field(default_factory=dict)
    model: str = ""


@dataclass(frozen=True, slots=True)
class EvaluationPass:
    """An evaluation between iterations.

    Attributes:
        iteration: the first after it.
        training: the mode of the model; True where `eval` was forgotten.
        calls: of the model.
        loss, accuracy, agreement: means over its examples; None where not seen. ``agreement`` is of
            tensors of whole numbers that the program compared: predictions with labels.
        layers, inputs, output, target, row_labels, likeness: as in `Iteration`, of its first batch where
            looked at.
        scalars, loader: as in `Iteration`.
        place: the line that called the model.
        model: the path of what was called: the number of its model before the slash.
        others: as in `Iteration`.
        unset: numbers of models that evaluate with statistics of normalizations that no batch has changed.
        weights: fingerprints of the parameters of the first model that was called.
        classes, numbers: how well predictions fit their targets, with their codes and with other codes; see `child.codes`.
        repeated: the number of batches if all had the same loss, else 0.
    """

    iteration: int
    training: bool | None
    calls: int
    loss: float | None
    accuracy: float | None
    agreement: float | None
    examples: float
    layers: Mapping[str, Mapping[str, Any]]
    inputs: Sequence[Record]
    output: Record
    target: Record
    row_labels: tuple[int, ...]
    likeness: Record
    scalars: Sequence[Record] = ()
    loader: int | None = None
    place: SourceLine | None = None
    model: str = ""
    others: Mapping[str, float] = field(default_factory=dict)
    unset: frozenset[int] = frozenset()
    weights: tuple[float, ...] = ()
    classes: Mapping[str, float] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    repeated: int = 0


@dataclass(frozen=True, eq=False)
class TrainingHistory:
    """A training so far.

    Attributes:
        layers: in the order in which they are defined.
        parameters: of all models.
        order: paths of leaves and functions (``path:relu``) in the order of their calls, with their kinds.
        iterations: those that were looked at.
        evaluations: all that were recorded.
        optimizers, schedulers, loaders, losses, backwards, nonfinite: the records, as they came.
        epochs, steps, clips, scalers, rates: as well.
        ended: whether the training is over.
        count: iterations so far, also those not looked at.
        planned: iterations in all, where the program states them; None else.
        arguments: words of the job's command line behind its program.
        cycles: of the inspected iterations, and of those whose calls have an order that is new.
        calls: line -> its place, of all calls of cycles.
        takes, loads: records of stored and restored states of models, optimizers and schedules.
        uses: records of the first call of a model after a load.
        passes: single calls without gradients in training mode, such as calls of a reference model.
        ranks: the trainings of other ranks of the job, by their number.
        experiments: ``iteration``, ``facts`` and ``problem`` of each experiment on the running model.
        pairings: how much inputs explain about targets, as `child.experiments.pairing` measures it.
    """

    layers: tuple[ModelLayer, ...]
    parameters: tuple[Parameter, ...]
    order: tuple[tuple[str, str], ...]
    iterations: tuple[Iteration, ...]
    evaluations: tuple[EvaluationPass, ...]
    optimizers: tuple[Record, ...]
    schedulers: tuple[Record, ...]
    loaders: tuple[Record, ...]
    losses: tuple[Record, ...]
    backwards: tuple[Record, ...]
    nonfinite: tuple[Record, ...]
    ended: bool
    count: int
    planned: int | None = None
    loss_by_line: Mapping[str, Series] = field(default_factory=dict)
    epochs: tuple[Record, ...] = ()
    steps: tuple[Record, ...] = ()
    clips: tuple[Record, ...] = ()
    scalers: tuple[Record, ...] = ()
    rates: tuple[Record, ...] = ()
    arguments: tuple[str, ...] = ()
    cycles: tuple[Cycle, ...] = ()
    calls: Mapping[str, SourceLine] = field(default_factory=dict)
    takes: tuple[Record, ...] = ()
    loads: tuple[Record, ...] = ()
    uses: tuple[Record, ...] = ()
    passes: tuple[EvaluationPass, ...] = ()
    ranks: Mapping[int, TrainingHistory] = field(default_factory=dict)
    experiments: tuple[Record, ...] = ()
    pairings: tuple[Record, ...] = ()

    @cached_property
    def loss(self) -> Series:
        """The training loss: iteration and value, the mean over the passes of an iteration.

        Where several lines call ``backward``, as for a generator and a discriminator or for a search and the
        training after it, the one that does so most often; of equals the first.
        """
        return max(self.loss_by_line.values(), key=len, default=np.empty((0, 2)))

    def until(self, iteration: int) -> TrainingHistory:
        """The same training as it was at the start of this iteration."""

        def before(records: tuple[Record, ...]) -> tuple[Record, ...]:
            return tuple(r for r in records if int(r.get("iteration", 0)) < iteration)

        return replace(
            self,
            iterations=tuple(it for it in self.iterations if it.number < iteration),
            evaluations=tuple(ev for ev in self.evaluations if ev.iteration < iteration),
            nonfinite=before(self.nonfinite),
            epochs=before(self.epochs),
            steps=before(self.steps),
            clips=before(self.clips),
            scalers=before(self.scalers),
            rates=before(self.rates),
            cycles=tuple(cycle for cycle in self.cycles if cycle.number < iteration),
            takes=before(self.takes),
            loads=before(self.loads),
            uses=before(self.uses),
            passes=tuple(of for of in self.passes if of.iteration < iteration),
            experiments=before(self.experiments),
            pairings=before(self.pairings),
            ranks={rank: of.until(iteration) for rank, of in self.ranks.items()},
            loss_by_line={
                line: earlier
                for line, series in self.loss_by_line.items()
                if len(earlier := series[series[:, 0] < iteration])
            },
            ended=False,
            count=min(self.count, iteration),
        )

    def parameter_series(self, name: str, what: str, number: str) -> Series:
        """A number of a parameter over the iterations looked at, such as ("0.weight", "update", "rms").

        Without those where not all of its elements were finite: the others say nothing then.
        """
        return _series(
            (iteration.number, of.get(number))
            for iteration in self.iterations
            if not (of := iteration.parameters.get(name, {}).get(what, {})).get("nonfinite")
        )

    def layer_series(self, path: str, number: str) -> Series:
        """A number of a layer's output over the iterations looked at, such as ("1", "constant")."""
        return _series((it.number, it.layers.get(path, {}).get(number)) for it in self.iterations)

    def value_series(self, name: str, number: str) -> Series:
        """A number of a tensor that the user has chosen, such as ("body.1", "p50")."""
        return _series((it.number, it.values.get(name, {}).get(number)) for it in self.iterations)

    def series(self, name: str) -> Series:
        """The series that a `Finding` names; empty for one that is not known.

        ``loss``, ``rate``, ``accuracy`` (of batches), ``evaluation/loss``, ``evaluation/accuracy``,
        ``layers/PATH/NUMBER`` as of `layer_series`, ``parameters/NAME/WHAT/NUMBER`` as of `parameter_series`.
        """
        kind, _, rest = name.partition("/")
        if kind == "loss":
            return self.loss
        if kind == "rate":
            return _series((it.number, max(it.rates, default=None)) for it in self.iterations)
        if kind == "accuracy":
            return _series((iteration.number, iteration.accuracy) for iteration in self.iterations)
        if kind == "evaluation" and rest in ("loss", "accuracy"):
            return _series((ev.iteration, getattr(ev, rest)) for ev in self.evaluations)
        if kind == "layers" and "/" in rest:
            path, _, number = rest.rpartition("/")
            return self.layer_series(path, number)
        if kind == "parameters" and rest.count("/") >= 2:
            path, what, number = rest.rsplit("/", 2)
            return self.parameter_series(path, what, number)
        return _series(())

    def layer(self, path: str) -> ModelLayer | None:
        """The layer of this path; of a function (``path:relu``) the one before it."""
        wanted = path.partition(":")[0]
        return next((layer for layer in self.layers if layer.path == wanted), None)


def read_records(records: Path | Iterable[Record], planned: int | None = None) -> TrainingHistory:
    """The history of a training from its records, in their order.

    Args:
        records: the records, or the file that has them, next to which those of other ranks may lie.
        planned: iterations in all, if known.
    """
    if not isinstance(records, Path):
        return _HistoryBuilder(planned).read(records)
    ranks = {
        rank: _HistoryBuilder(planned).read(_of_file(path))
        for rank in range(1, MOST_RANKS)
        if (path := Path(rank_path(str(records), rank))).exists()
    }
    return replace(_HistoryBuilder(planned).read(_of_file(records)), ranks=ranks)


def _of_file(path: Path) -> Iterable[Record]:
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


class _HistoryBuilder:
    def __init__(self, planned: int | None) -> None:
        self._planned = planned
        self._kinds: dict[str, list[Record]] = {}
        self._names: dict[int, str] = {}
        self._hidden: set[int] = set()
        self._models: dict[int, Record] = {}
        self._first: dict[tuple[int, str], Record] = {}
        self._frozen: set[tuple[int, str]] = set()
        self._iterations: list[Iteration] = []
        self._evaluations: list[EvaluationPass] = []
        self._order: dict[str, str] = {}
        self._losses: dict[str, dict[int, list[float]]] = {}
        self._count = 0
        self._ended = False

    def read(self, records: Iterable[Record]) -> TrainingHistory:
        for record in records:
            try:
                self._take(record)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue
        layers = [layer for n in sorted(self._models) for layer in self._layers(n)]
        return TrainingHistory(
            layers=tuple(layers),
            parameters=tuple(self._parameters()),
            order=tuple((self._named(path), kind) for path, kind in self._order.items()),
            iterations=tuple(self._iterations),
            evaluations=tuple(self._evaluations),
            optimizers=self._of("optimizer"),
            schedulers=self._of("scheduler"),
            loaders=self._of("loader"),
            losses=self._of("loss"),
            backwards=self._of("backward"),
            nonfinite=self._of("nonfinite"),
            epochs=self._of("epoch"),
            steps=self._of("step"),
            clips=self._of("clip"),
            scalers=self._of("scaler"),
            rates=self._of("rate"),
            arguments=tuple(
                str(word) for r in self._of("begun") for word in r.get("arguments", ())
            ),
            cycles=tuple(map(_cycle, self._of("cycle"))),
            calls={str(r["line"]): SourceLine(*r["place"]) for r in self._of("call") if r["place"]},
            takes=self._of("take"),
            loads=self._of("load"),
            uses=self._of("use"),
            passes=tuple(map(self._evaluation, self._of("pass"))),
            experiments=tuple(map(self._experiment, self._of("experiment"))),
            pairings=self._of("pairing"),
            ended=self._ended,
            count=self._count,
            planned=self._planned,
            loss_by_line={
                line: np.array([(n, np.mean(found)) for n, found in sorted(values.items())])
                for line, values in self._losses.items()
            },
        )

    def _experiment(self, record: Record) -> Record:
        facts = [
            {**fact, "layer": self._named(fact["layer"])} if "layer" in fact else fact
            for fact in record["facts"]
        ]
        return {**record, "facts": facts}

    def _of(self, kind: str) -> tuple[Record, ...]:
        return tuple(self._kinds.get(kind, ()))

    def _take(self, record: Record) -> None:
        kind = str(record["kind"])
        if kind == "root":
            self._names[int(record["number"])] = str(record["name"])
            if record.get("hidden"):
                self._hidden.add(int(record["number"]))
        elif kind == "model":
            self._models[int(record["number"])] = record
            for named in (*record["layers"], *record["parameters"]):
                key = int(record["number"]), _identity(named)
                self._first.setdefault(key, named)
                if named.get("trainable") is False:
                    self._frozen.add(key)
        elif kind == "losses":
            for iteration, line, value in record["losses"]:
                self._count = max(self._count, int(iteration) + 1)
                of_line = self._losses.setdefault(str(line), {})
                of_line.setdefault(int(iteration), []).append(_number(value))
        elif kind == "iteration":
            self._iterations.append(self._iteration(record))
            self._count = max(self._count, int(record["iteration"]) + 1)
        elif kind == "evaluation":
            self._evaluations.append(self._evaluation(record))
        elif kind == "ended":
            self._ended = True
            self._count = max(self._count, int(record["iterations"]))
        else:
            self._kinds.setdefault(kind, []).append(record)

    def _iteration(self, record: Record) -> Iteration:
        self._note_order(record)
        return Iteration(
            number=int(record["iteration"]),
            training=record.get("training"),
            rates=tuple(map(float, record.get("rates", ()))),
            unread=_numbers(record.get("unread", {})),
            backwards=record.get("backwards", {}),
            stepped=int(record.get("stepped", 0)),
            before={
                number: {"name": self._named(left["name"]), "left": _number(left["left"])}
                for number, left in record.get("before", {}).items()
            },
            parameters={
                self._named(name): {what: _numbers(of) for what, of in value.items()}
                for name, value in record.get("parameters", {}).items()
            },
            layers=self._outputs(record),
            inputs=_inputs(record),
            output=_numbers(record.get("output", {})),
            target=_numbers(record.get("target", {})),
            loss_function=str(record.get("function", "")),
            accuracy=_optional(record.get("accuracy")),
            likeness=record.get("likeness", {}),
            row_labels=tuple(record.get("row_labels", ())),
            modes=record.get("modes", {}),
            scalars=[_numbers(value) for value in record.get("scalars", ())],
            clippings=[_numbers(value) for value in record.get("clippings", ())],
            skipped_steps=int(record.get("skipped_steps", 0)),
            loader=record.get("loader"),
            values={name: _numbers(value) for name, value in record.get("values", {}).items()},
            direct=bool(record.get("direct")),
            relations=_numbers(record.get("relations", {})),
            softmaxes=tuple(map(_numbers, record.get("softmaxes", ()))),
            others=self._fingerprints(record),
            unheld=frozenset(map(self._named, record.get("unheld", ()))),
            statistics={
                self._named(n): _numbers(v) for n, v in record.get("statistics", {}).items()
            },
            scheduled=tuple(map(int, record.get("scheduled", ()))),
            model=str(record.get("model", "")),
        )

    def _evaluation(self, record: Record) -> EvaluationPass:
        self._note_order(record)
        return EvaluationPass(
            iteration=int(record["iteration"]),
            training=record.get("training"),
            calls=int(record.get("calls", 0)),
            loss=_optional(record.get("loss")),
            accuracy=_optional(record.get("accuracy")),
            agreement=_optional(record.get("agreement")),
            examples=float(record.get("examples", 0.0)),
            layers=self._outputs(record),
            inputs=_inputs(record),
            output=_numbers(record.get("output", {})),
            target=_numbers(record.get("target", {})),
            row_labels=tuple(record.get("row_labels", ())),
            likeness=record.get("likeness", {}),
            scalars=[_numbers(value) for value in record.get("scalars", ())],
            loader=record.get("loader"),
            place=SourceLine(*record["place"]) if record.get("place") else None,
            model=str(record.get("model", "")),
            others=self._fingerprints(record),
            unset=frozenset(record.get("unset", ())),
            weights=tuple(map(_number, record.get("weights", ()))),
            classes=_numbers(record.get("classes", {})),
            numbers=_numbers(record.get("numbers", {})),
            repeated=int(record.get("repeated", 0)),
        )

    def _fingerprints(self, record: Record) -> Mapping[str, float]:
        return {self._named(name): _number(v) for name, v in record.get("others", {}).items()}

    def _note_order(self, record: Record) -> None:
        for path, kind in record.get("order", ()):
            self._order.setdefault(path, kind)

    def _outputs(self, record: Record) -> Mapping[str, Mapping[str, Any]]:
        return {
            self._named(path): {**_numbers(value), "source": self._named(value.get("source", ""))}
            for path, value in record.get("layers", {}).items()
        }

    def _named(self, path: str) -> str:
        """``1/0.weight`` as ``critic.0.weight``; of the first model the path alone."""
        number, _, within = path.partition("/")
        if not number.isdigit() or int(number) == 0:
            return within
        name = self._names.get(int(number)) or f"model{number}"
        return f"{name}.{within}" if within else name

    def _layers(self, number: int) -> Iterable[ModelLayer]:
        for latest in self._models[number]["layers"]:
            record = self._first[number, _identity(latest)]
            yield ModelLayer(
                path=self._named(f"{number}/{record['path']}"),
                kind=record["class"],
                settings=record["settings"],
                place=SourceLine(*record["place"]) if record.get("place") else None,
                leaf=bool(record["leaf"]),
                called=bool(latest["called"]),
                parameters=tuple(record["parameters"]),
                model=number,
                hidden=number in self._hidden,
            )

    def _parameters(self) -> Iterable[Parameter]:
        for number in sorted(self._models):
            for latest in self._models[number]["parameters"]:
                key = number, _identity(latest)
                record, name = self._first[key], self._named(f"{number}/{latest['name']}")
                yield Parameter(
                    name=name,
                    layer=name.rpartition(".")[0],
                    shape=tuple(record["shape"]),
                    trainable=bool(latest["trainable"]),
                    held=bool(latest["held"]),
                    thawed=bool(latest["trainable"]) and key in self._frozen,
                    values={name: _number(record[name]) for name in _VALUES if name in record},
                )


def _identity(record: Record) -> str:
    """Of a layer or parameter: what is put in its place is another one."""
    return str([record.get(key) for key in ("name", "shape", "path", "class", "settings")])


def _cycle(record: Record) -> Cycle:
    calls = (
        TrainingCall(str(kind), int(subject), str(line), str(flag), _optional(value))
        for kind, subject, line, flag, value in record["calls"]
    )
    return Cycle(int(record["iteration"]), tuple(calls))


def _series(points: Iterable[tuple[int, float | None]]) -> Series:
    found = [(number, value) for number, value in points if value is not None]
    return np.array(found, dtype=float).reshape(-1, 2)


def _number(value: Any) -> float:
    return _NUMBERS[value] if isinstance(value, str) else float(value)


def _optional(value: Any) -> float | None:
    return None if value is None else _number(value)


def _inputs(record: Record) -> list[dict[str, Any]]:
    """What was given to the model, examples first: a state that begins with one value everywhere is none of them."""
    given = [{"shape": [], "dtype": "", **_numbers(value)} for value in record.get("inputs", ())]
    return sorted(given, key=lambda of: of.get("min", 0.0) == of.get("max", 1.0))


def _numbers(record: Record) -> dict[str, Any]:
    """The record with "nan" and the like as numbers."""
    return {
        key: _NUMBERS[value] if isinstance(value, str) and value in _NUMBERS else value
        for key, value in record.items()
    }
