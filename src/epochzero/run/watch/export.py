"""The curves of a watched training for TensorBoard: a scalar an iteration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from epochzero.errors import InputError, writing
from epochzero.run.watch.history import Series, TrainingHistory

_OF_LAYERS = ("mean", "std", "constant", "zeros")
_OF_PARAMETERS = ("gradient", "update", "weight")
_OF_VALUES = ("mean", "p5", "p50", "p95")


def curves(history: TrainingHistory) -> Iterator[tuple[str, Series]]:
    """All curves with a name, as TensorBoard groups them by what stands before the slash."""
    for line, series in history.loss_by_line.items():
        several = len(history.loss_by_line) > 1
        yield f"loss/line {line.rpartition(':')[2]}" if several else "loss/training", series
    yield "loss/evaluation", history.series("evaluation/loss")
    yield "accuracy/batches", history.series("accuracy")
    yield "accuracy/evaluation", history.series("evaluation/accuracy")
    yield "learning rate", history.series("rate")
    for parameter in history.parameters:
        for what in _OF_PARAMETERS:
            yield f"{what}/{parameter.name}", history.parameter_series(parameter.name, what, "rms")
    for path, _ in history.order:
        for number in _OF_LAYERS:
            yield f"{number} of output/{path}", history.layer_series(path, number)
    for name in dict.fromkeys(name for it in history.iterations for name in it.values):
        for number in _OF_VALUES:
            yield f"values/{name} {number}", history.value_series(name, number)


def write_tensorboard(history: TrainingHistory, folder: Path) -> int:
    """Writes the curves that have points; how many these are.

    Raises:
        InputError: tensorboard is not installed, or the folder cannot be written.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise InputError("tensorboard is not installed: pip install tensorboard") from error
    count = 0
    with writing(folder):
        writer = EventFileWriter(str(folder))
        for name, series in curves(history):
            count += bool(len(series))
            for iteration, value in series:
                scalar = Summary.Value(tag=name, simple_value=float(value))
                writer.add_event(Event(step=int(iteration), summary=Summary(value=[scalar])))
        writer.close()
    return count
