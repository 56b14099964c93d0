"""Watches what Keras trains, on any of its backends, and emits the records that a loop of torch gives.

A callback sees losses, weights and metrics. With the backend torch the calls of layers and losses are real ones,
and are looked at as well; in the others they are traced, once, and there is nothing to see. While Keras
trains, what watches torch looks away, so that nothing is told twice.

Source: Keras' documentation, "Base Callback class", "Layer.call", "Model training APIs".
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from epochzero.injected.identity import ByIdentity
from epochzero.run.watch.child.places import place
from epochzero.run.watch.child.records import SCHEMA, Records
from epochzero.run.watch.child.schedule import Schedule

__all__ = ["KerasWatch"]

MOST_ELEMENTS = 8192
# As torch calls what is the same.
_LOSSES = {
    "MeanSquaredError": "mse_loss",
    "MeanAbsoluteError": "l1_loss",
    "Huber": "huber_loss",
    "KLDivergence": "kl_div",
    "Poisson": "poisson_nll_loss",
    "BinaryCrossentropy": "binary_cross_entropy",
    "BinaryCrossentropy of logits": "binary_cross_entropy_with_logits",
    "CategoricalCrossentropy of logits": "cross_entropy",
    "SparseCategoricalCrossentropy of logits": "cross_entropy",
}
_ACCURACIES = ("accuracy", "acc", "binary_accuracy", "categorical_accuracy",
               "sparse_categorical_accuracy")  # fmt: skip


def _safe(method: Callable[..., Any]) -> Callable[..., Any]:
    """What goes wrong here is told, and Keras is not watched further."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.ended:
            return None
        try:
            with self.schedule:
                return method(self, *args, **kwargs)
        except Exception as error:
            self.ended = True
            told = f"{type(error).__name__}: {error}"[:500]
            self.records.emit("failed", where=f"keras {method.__name__}", error=told, ended=True)
            return None

    return guarded


class KerasWatch:
    """Puts a callback into each ``fit`` and ``evaluate``.

    Args:
        keras: the module.
        records: where to.
        schedule: when to look closer.
        observer: what watches torch; None where torch is not loaded.
    """

    def __init__(self, keras: Any, records: Records, schedule: Schedule, observer: Any) -> None:
        self.ended = False
        self.records = records
        self.schedule = schedule
        self._keras = keras
        self._observer = observer
        self._made: ByIdentity[Any] = ByIdentity()
        self._compiled: ByIdentity[Any] = ByIdentity()
        self._models: list[weakref.ref[Any]] = []
        self._paths: dict[int, str] = {}
        self._optimizers: list[weakref.ref[Any]] = []
        self._iteration = 0
        self._line = ""
        self._place: list[Any] | None = None
        self._scene: Any = None
        self._before: dict[str, Any] = {}
        self._mean: tuple[int, float] = (0, 0.0)
        self._losses: list[list[Any]] = []
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Puts everything in place."""
        model, layer = self._keras.Model, self._keras.layers.Layer
        if self._observer is not None:
            self._observer.foreign = (layer,)
        else:
            self.records.emit(
                "begun", schema=SCHEMA, time=time.time(), pid=os.getpid(), torch=None, gpu=False
            )
        self._put(
            layer, "__init__", lambda f: _after(f, lambda _, made, *a, **k: self.layer_made(made))
        )
        self._put(
            model, "compile", lambda f: _after(f, lambda _, made, *a, **k: self.compiled(made))
        )
        for name in ("fit", "evaluate"):
            self._put(model, name, self._with_callback)
        if self._keras.backend.backend() == "torch":
            self._put(layer, "__call__", lambda f: _after(f, self.layer_called))
            self._put(model, "compute_loss", lambda f: _after(f, self.loss_computed))

    def _put(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:
        before = getattr(owner, name)
        inherited = name not in vars(owner)
        setattr(owner, name, around(before))
        self._undo.append(
            (lambda: delattr(owner, name)) if inherited else (lambda: setattr(owner, name, before))
        )

    def remove(self) -> None:
        """Puts back what was there before."""
        while self._undo:
            self._undo.pop()()

    def callback(self) -> Any:
        """A callback that tells this watch what ``fit`` or ``evaluate`` does."""
        return _callback_class(self._keras, self)()

    def joins(self) -> Any:
        """A callback for a ``fit`` that goes on already; what watches torch looks away from now on."""
        if self._observer is not None:
            self._observer.muted += 1
        self._began_at(place())
        return self.callback()

    def _began_at(self, where: list[Any] | None) -> None:
        self._line = f"{where[0]}:{where[1]}" if where else ""
        self._place = where

    def _with_callback(self, function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(model: Any, *args: Any, **kwargs: Any) -> Any:
            given = signature.bind(model, *args, **kwargs)
            theirs: Any = given.arguments.get("callbacks")
            if self.ended or isinstance(theirs, self._keras.callbacks.CallbackList):
                return function(model, *args, **kwargs)
            several = isinstance(theirs, (list, tuple))
            theirs = list(theirs) if several else [theirs] if theirs is not None else []
            given.arguments["callbacks"] = [*theirs, self.callback()]
            observer = self._observer
            self._began_at(place())
            if observer is not None:
                observer.muted += 1
            try:
                return function(*given.args, **given.kwargs)
            finally:
                if observer is not None:
                    observer.muted -= 1

        return called

    # What is made ---------------------------------------------------------------------------------

    @_safe
    def layer_made(self, layer: Any) -> None:
        """Remembers the line that made a layer."""
        found = place(without=layer)
        if found is not None:
            self._made.set(layer, found)

    @_safe
    def compiled(self, model: Any) -> None:
        """Remembers the line that chose loss and optimizer."""
        self._compiled.set(model, place(without=model))

    # Training -------------------------------------------------------------------------------------

    @_safe
    def begins(self, model: Any) -> None:
        """A model is going to be trained."""
        if any(ref() is model for ref in self._models):
            return
        where = self._compiled.get(model) or self._place
        number = len(self._models)
        self._models.append(weakref.ref(model))
        self.records.emit("root", number=number, name=model.name)
        optimizer = model.optimizer
        settings = {
            name: value
            for name, value in optimizer.get_config().items()
            if isinstance(value, (bool, int, float, str))
        }
        settings["lr"] = float(optimizer.learning_rate)
        kind = type(optimizer).__name__
        self._optimizers.append(weakref.ref(optimizer))
        self.records.emit(
            "optimizer", number=number, **{"class": kind}, place=where, groups=[settings]
        )
        name, told = _loss_of(model, self._keras)
        told |= {"place": where, "reduction": "mean", "weight": None, "evaluating": False}
        self.records.emit("loss", function=name, **told)
        self.records.emit("backward", line=self._line, place=self._place, graph=[])

    @_safe
    def epoch_begins(self, batches: int | None) -> None:
        """An epoch begins."""
        self._mean = (0, 0.0)
        self.records.emit("epoch", loader=None, iteration=self._iteration, batches=batches)

    @_safe
    def batch_begins(self, model: Callable[[], Any]) -> None:
        """A batch is going to be trained on."""
        if not self.schedule.due(self._iteration):
            return
        if self._iteration == 0 or not self._paths:
            self._tell_model(model())
        self._before = {name: few(values).copy() for name, values, _ in self._weights(model())}
        self._scene = self._new_scene(evaluating=False)

    @_safe
    def batch_ended(self, model: Callable[[], Any], batch: int, mean: float | None) -> None:
        """A batch was trained on; ``mean`` is of the losses of the epoch so far."""
        if mean is not None:
            count, before = self._mean
            # Keras tells the mean over the epoch; batches are of one size but for the last.
            loss = mean if count == 0 else mean * (batch + 1) - before * count
            self._mean = batch + 1, mean
            self._losses.append([self._iteration, self._line, float(loss)])
        if self._before:
            self._tell_iteration(model())
        elif len(self._losses) >= 50:
            self._tell_losses()
        self._iteration += 1

    def _tell_iteration(self, model: Any) -> None:
        parameters: dict[str, Any] = {}
        for name, values, of in self._weights(model):
            after, before = few(values), self._before.get(name)
            if before is None or not of.trainable:
                continue
            told = parameters[name] = {
                "weight": _numbers(after),
                "update": _numbers(after - before),
            }
            gradient = getattr(getattr(of, "value", None), "grad", None)
            if gradient is not None:
                told["gradient"] = _numbers(few(gradient.numpy()))
        self._before = {}
        self._tell_losses()
        scene, self._scene = self._scene, None
        rates = [float(o.learning_rate) for ref in self._optimizers if (o := ref()) is not None]
        self.records.emit(
            "iteration",
            iteration=self._iteration,
            rates=rates,
            backwards={self._line: 1},
            stepped=1,
            before={},
            parameters=parameters,
            loader=None,
            **({"calls": 1, "training": True} | (self._ended(scene) if scene else {})),
        )

    def _tell_losses(self) -> None:
        losses, self._losses = self._losses, []
        if losses:
            self.records.emit("losses", losses=losses)

    # Evaluation -----------------------------------------------------------------------------------

    @_safe
    def evaluation_begins(self) -> None:
        """An evaluation begins."""
        self._tell_losses()
        if self.schedule.due(self._iteration):
            self._scene = self._new_scene(evaluating=True)

    @_safe
    def evaluation_ended(self, metrics: dict[str, Any]) -> None:
        """An evaluation has ended with these metrics."""
        scene, self._scene = self._scene, None
        told = {"calls": 1, "training": False} | (self._ended(scene) if scene else {})
        numbers = {name: float(value) for name, value in metrics.items()}
        told["loss"] = numbers.get("loss")
        told["accuracy"] = next((numbers[n] for n in _ACCURACIES if n in numbers), None)
        told["scalars"] = [
            {"line": self._line, "text": "", "name": name, "count": 1, "mean": one, "last": one}
            for name, one in numbers.items()
        ]
        where = {"place": self._place, "iteration": self._iteration}
        self.records.emit("evaluation", **{**told, **where})

    # With the backend torch -----------------------------------------------------------------------

    def layer_called(self, output: Any, layer: Any, *args: Any, **kwargs: Any) -> None:
        """A layer has given its output, of what another one made."""
        if self._scene is not None:
            self._look_at_layer(layer, args, output)

    @_safe
    def _look_at_layer(self, layer: Any, args: Any, output: Any) -> None:
        path = self._paths.get(id(layer))
        if path is not None and not any(True for _ in _inside(layer)):
            activation = getattr(getattr(layer, "activation", None), "__name__", "linear")
            kind = type(layer).__name__
            kind = kind if activation == "linear" else activation
            self._scene.layer_called(path, kind, output, self._scene.source(args))

    def loss_computed(self, loss: Any, model: Any, *args: Any, **kwargs: Any) -> None:
        """A loss was computed, of the inputs, the labels and the output."""
        if self._scene is not None:
            given = dict(zip(("x", "y", "y_pred"), args, strict=False)) | kwargs
            self._look_at_loss(loss, model, given)

    @_safe
    def _look_at_loss(self, loss: Any, model: Any, given: dict[str, Any]) -> None:
        output: Any = given.get("y_pred")
        target: Any = given.get("y")
        scene = self._scene
        scene.model_given(f"{self._number(model)}/", not scene.evaluating, given.get("x"))
        if output is None or isinstance(output, (dict, list, tuple)):
            return
        if hasattr(target, "shape") and target.shape[1:] == (1,) and output.shape[1:] != (1,):
            target = target.squeeze(1)
        name = _loss_of(model, self._keras)[0]
        scene.loss_called(name, loss.detach(), output.detach(), target)

    def _new_scene(self, *, evaluating: bool) -> Any:
        if self._keras.backend.backend() != "torch":
            return None
        from epochzero.run.watch.child.scene import Scene

        return Scene(evaluating=evaluating, looking=True)

    def _ended(self, scene: Any) -> dict[str, Any]:
        told: dict[str, Any] = scene.ended()
        return told

    # Models ---------------------------------------------------------------------------------------

    def _number(self, model: Any) -> int:
        return next((n for n, ref in enumerate(self._models) if ref() is model), 0)

    def _weights(self, model: Any) -> Iterator[tuple[str, Any, Any]]:
        """Name, values and variable of all weights of a model."""
        number = self._number(model)
        for path, layer in _layers(model):
            own = (*layer._trainable_variables, *layer._non_trainable_variables)
            for variable in own:
                values = self._keras.ops.convert_to_numpy(variable)
                if values.dtype.kind == "f" and values.size:
                    yield f"{number}/{path}.{variable.name}", values, variable

    def _tell_model(self, model: Any) -> None:
        number = self._number(model)
        layers, parameters = [], []
        for path, layer in _layers(model):
            self._paths[id(layer)] = f"{number}/{path}"
            activation = getattr(layer, "activation", None)
            settings: dict[str, Any] = {
                name: value
                for name, value in layer.get_config().items()
                if isinstance(value, (bool, int, float, str)) and name != "name"
            }
            settings["activation"] = getattr(activation, "__name__", None)
            layers.append({
                "path": path,
                "class": type(layer).__name__,
                "library": type(layer).__module__.startswith("keras."),
                "leaf": not any(True for _ in _inside(layer)),
                "settings": settings,
                "parameters": [v.name for v in layer._trainable_variables],
                "place": self._made.get(layer),
                "called": True,
                "training": True,
            })  # fmt: skip
        for name, values, variable in self._weights(model):
            flat = few(values)
            parameters.append({
                "name": name.partition("/")[2],
                "shape": list(values.shape),
                "trainable": bool(variable.trainable),
                "held": bool(variable.trainable),
                **_numbers(flat),
                "mean": float(flat.mean()),
                "std": float(flat.std()),
            })  # fmt: skip
        self.records.emit(
            "model",
            number=number,
            iteration=self._iteration,
            layers=layers,
            parameters=parameters,
            **{"class": type(model).__name__},
        )

    def end(self) -> None:
        """Tells what is held."""
        self._tell_losses()
        if self._models and self._observer is None:
            self.records.emit("ended", iterations=self._iteration, spent=self.schedule.spent)
        self.records.flush()
        self.ended = True


def _callback_class(keras: Any, watch: KerasWatch) -> Any:
    """A callback that tells a watch; keras is known only now."""

    class Watching(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_begin(self, logs: Any = None) -> None:
            watch.begins(self.model)

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            watch.epoch_begins(self.params.get("steps"))

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            watch.batch_begins(lambda: self.model)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            watch.batch_ended(lambda: self.model, batch, (logs or {}).get("loss"))

        def on_test_begin(self, logs: Any = None) -> None:
            watch.evaluation_begins()

        def on_test_end(self, logs: Any = None) -> None:
            watch.evaluation_ended(dict(logs or {}))

    return Watching


def few(values: Any) -> Any:
    """At most so many elements of an array, in short runs at even distances, flat."""
    flat = values.reshape(-1)
    if flat.size > MOST_ELEMENTS:
        length = flat.size // (MOST_ELEMENTS // 8)
        flat = flat[: flat.size // length * length].reshape(-1, length)[:, :8].reshape(-1)
    return flat.astype("float32")


def _numbers(flat: Any) -> dict[str, float]:
    finite = flat[abs(flat) < math.inf]
    largest = float(abs(finite).max()) if finite.size else 0.0
    rms = float(((finite / largest) ** 2).mean() ** 0.5) * largest if largest else 0.0
    zeros, nonfinite = float((flat == 0).mean()), 1 - finite.size / flat.size
    return {"rms": rms, "largest": largest, "zeros": zeros, "nonfinite": nonfinite}


def _inside(layer: Any) -> Iterator[Any]:
    """The layers of a layer."""
    found: Any = getattr(layer, "layers", None) or getattr(layer, "_layers", ())
    for one in found:
        if one is not layer and type(one).__name__ != "InputLayer":
            yield one


def _layers(model: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for layer in _inside(model):
        path = f"{before}{layer.name}"
        yield path, layer
        yield from _layers(layer, f"{path}.")


def _loss_of(model: Any, keras: Any) -> tuple[str, dict[str, Any]]:
    """The name of a model's loss, with its settings."""
    loss = model.loss
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    kind = type(loss).__name__ if isinstance(loss, keras.losses.Loss) else ""
    if not kind:
        name = getattr(loss, "__name__", "")
        kind = "".join(part.capitalize() for part in name.split("_"))
    logits = bool(getattr(loss, "_fn_kwargs", {}).get("from_logits", False))
    name = _LOSSES.get(f"{kind} of logits" if logits else kind, kind)
    return name, {"from_logits": logits, "keras": kind}


def _after(function: Callable[..., Any], tell: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        tell(result, *args, **kwargs)
        return result

    return called
