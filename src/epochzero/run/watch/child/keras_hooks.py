"""Watches what Keras trains, on any of its backends, and emits the records that a loop of torch gives.

A callback sees losses, weights and metrics. With the backend torch the calls of layers and losses are real ones,
and are looked at as well; in the others they are traced, once, and there is nothing to see. While Keras
trains, what watches torch looks away, so that nothing is recorded twice.

Source: Keras' documentation, "Base Callback class", "Layer.call", "Model training APIs".
"""

from __future__ import annotations

import functools
import inspect
import os
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from epochzero.injected.identity import ByIdentity
from epochzero.injected.patches import Patches
from epochzero.run.watch.child.arguments import arguments
from epochzero.run.watch.child.keras_fits import (
    class_weights,
    clipping_of,
    loader_of,
    norm_of,
    schedules_of,
)
from epochzero.run.watch.child.keras_models import (
    activation_of,
    arguments_of,
    as_compared,
    as_torch,
    few,
    fingerprint,
    inside,
    layers_of,
    loss_of,
    numbers,
    settings_of,
    shape_of,
    weights_of,
)
from epochzero.run.watch.child.places import place
from epochzero.run.watch.child.records import SCHEMA, Records
from epochzero.run.watch.child.schedule import DESCRIBED_EVALUATIONS, Schedule

_ACCURACIES = ("accuracy", "acc", "binary_accuracy", "categorical_accuracy",
               "sparse_categorical_accuracy")  # fmt: skip


def _safe(method: Callable[..., Any]) -> Callable[..., Any]:
    """A failure is recorded, and Keras is not watched further."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.ended:
            return None
        try:
            self.schedule.begin()
            try:
                return method(self, *args, **kwargs)
            finally:
                self.schedule.end()
        except Exception as error:
            self.ended = True
            text = f"{type(error).__name__}: {error}"[:500]
            self.records.emit("failed", where=f"keras {method.__name__}", error=text, ended=True)
            return None

    return guarded


class KerasInstrumentation:
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
        self._told: dict[int, list[bool]] = {}
        self._given: dict[str, Any] = {}
        self._clipping: tuple[str, str, float] | None = None
        self._iteration = self._evaluation = self._loaders = 0
        self._line = ""
        self._place: list[Any] | None = None
        self._scene: Any = None
        self._before: dict[str, Any] = {}
        self._mean: tuple[int, float] = (0, 0.0)
        self._losses: list[list[Any]] = []
        self._patches = Patches()

    def install(self) -> None:
        """Puts everything in place."""
        model, layer = self._keras.Model, self._keras.layers.Layer
        if self._observer is not None:
            self._observer.forward.foreign = (layer,)
        else:
            self.records.emit(
                "begun",
                schema=SCHEMA,
                time=time.time(),
                pid=os.getpid(),
                arguments=arguments(),
                torch=None,
                gpu=False,
            )
        for kind in (layer, self._keras.optimizers.Optimizer):
            self._put(
                kind, "__init__", lambda f: _after(f, lambda _, made, *a, **k: self.made(made))
            )
        self._put(
            model, "compile", lambda f: _after(f, lambda _, made, *a, **k: self.compiled(made))
        )
        for name in ("fit", "evaluate"):
            self._put(model, name, self._with_callback)
        for name in ("load_weights", "set_weights"):
            self._put(
                model, name, lambda f: _after(f, lambda _, made, *a, **k: self.restored(made))
            )
        if self._keras.backend.backend() == "torch":
            self._put(layer, "__call__", lambda f: _after(f, self.layer_called))
            self._put(model, "compute_loss", lambda f: _after(f, self.loss_computed))

    def _put(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:
        # Keras compares the methods of a model with those of its base classes to find the methods that a program overrides.
        owner = next(kind for kind in owner.__mro__ if name in vars(kind))
        self._patches.put(owner, name, around(vars(owner)[name]))

    def remove(self) -> None:
        """Puts back what was there before."""
        self._patches.remove()

    def callback(self) -> Any:
        """A callback that reports to this watch what ``fit`` or ``evaluate`` does."""
        return _callback_class(self._keras, self)()

    def joins(self) -> Any:
        """A callback for a ``fit`` that goes on already; what watches torch looks away from now on."""
        if self._observer is not None:
            self._observer.safety.muted += 1
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
            self._given = dict(given.arguments, callbacks=theirs)
            given.arguments["callbacks"] = [*theirs, self.callback()]
            observer = self._observer
            self._began_at(place())
            if observer is not None:
                observer.safety.muted += 1
            try:
                return function(*given.args, **given.kwargs)
            finally:
                # No reference to an object of the job stays.
                self._given = {}
                if observer is not None:
                    observer.safety.muted -= 1

        return called

    # What is made ---------------------------------------------------------------------------------

    @_safe
    def made(self, value: Any) -> None:
        """Remembers the line that made a layer or an optimizer."""
        found = place(without=value)
        if found is not None:
            self._made.set(value, found)

    @_safe
    def compiled(self, model: Any) -> None:
        """Remembers the line that chose loss and optimizer."""
        self._compiled.set(model, place(without=model))

    # Training -------------------------------------------------------------------------------------

    @_safe
    def begins(self, model: Any) -> None:
        """A model is going to be trained."""
        if not any(ref() is model for ref in self._models):
            self._models.append(weakref.ref(model))
            self.records.emit("root", number=len(self._models) - 1, name=model.name)
        if not any(ref() is model.optimizer for ref in self._optimizers):
            self._tell_optimizer(model)
        self._tell_fit(model)

    def _tell_optimizer(self, model: Any) -> None:
        optimizer, kind = model.optimizer, type(model.optimizer).__name__
        settings = arguments_of(optimizer) | {"lr": float(optimizer.learning_rate)}
        self._optimizers.append(weakref.ref(optimizer))
        self.records.emit(
            "optimizer",
            number=len(self._optimizers) - 1,
            **{"class": kind},
            place=self._place_of(optimizer, model),
            groups=[as_torch(settings, kind)],
        )

    def _place_of(self, optimizer: Any, model: Any) -> list[Any] | None:
        return self._made.get(optimizer) or self._compiled.get(model) or self._place

    def _tell_fit(self, model: Any) -> None:
        """What this training is given: its loss, its data, and what is done to rate and gradients."""
        optimizer, given = model.optimizer, self._given
        where = self._place_of(optimizer, model)
        name, found = loss_of(model, self._keras)
        weight = class_weights(given)
        compiled = self._place if weight else self._compiled.get(model) or self._place
        found |= {"place": compiled, "weight": weight, "evaluating": False}
        if self.records.is_first("loss", str((name, found))):
            self.records.emit("loss", function=name, **found)
        if self.records.is_first("backward", self._line):
            self.records.emit("backward", line=self._line, place=self._place, graph=[])
        loader = loader_of(given)
        if loader is not None and self.records.is_first("loader", str((self._line, loader))):
            self.records.emit("loader", number=self._loaders, **loader, place=self._place)
            self._loaders += 1
        for schedule in schedules_of(optimizer, given.get("callbacks", ())):
            if self.records.is_first("scheduler", str(schedule)):
                in_fit = schedule["class"] in map(_kind, given.get("callbacks", ()))
                self.records.emit("scheduler", **schedule, place=self._place if in_fit else where)
        self._clipping = clipping_of(optimizer)
        if self._clipping is not None and self.records.is_first("clip", str(where)):
            _, function, limit = self._clipping
            self.records.emit("clip", function=function, limit=limit, place=where)

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
        self._tell_model(model())
        self._before = {name: few(values).copy() for name, values, _ in self._weights(model())}
        self._scene = self._new_scene(evaluating=False, looking=True)

    @_safe
    def batch_ended(self, model: Callable[[], Any], batch: int, mean: float | None) -> None:
        """A batch was trained on; ``mean`` is of the losses of the epoch so far."""
        if mean is not None:
            count, before = self._mean
            # Keras reports the mean over the epoch; batches are of one size but for the last.
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
        norms = []
        for name, values, of in self._weights(model):
            after, before = few(values), self._before.get(name)
            if before is None or not of.trainable:
                continue
            found = parameters[name] = {"weight": numbers(after), "update": numbers(after - before)}
            gradient = getattr(getattr(of, "value", None), "grad", None)
            if gradient is not None:
                found["gradient"] = numbers(few(self._keras.ops.convert_to_numpy(gradient)))
                norms.append(found["gradient"]["rms"] * gradient.numel() ** 0.5)
        self._before = {}
        self._tell_losses()
        scene, self._scene = self._scene, None
        seen = {"calls": 1, "training": True} | (scene.ended() if scene else {})
        if self._clipping is not None and norms:
            setting, _, limit = self._clipping
            norm = norm_of(setting, norms)
            seen["clippings"] = [{"line": self._line, "limit": limit, "norm": norm}]
        self.records.emit(
            "iteration",
            iteration=self._iteration,
            rates=[float(model.optimizer.learning_rate)],
            backwards={self._line: 1},
            stepped=1,
            before={},
            parameters=parameters,
            loader=None,
            **seen,
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
        self._scene = self._new_scene(evaluating=True, looking=self.schedule.due(self._evaluation))
        self._evaluation += 1

    @_safe
    def evaluation_ended(self, metrics: dict[str, Any], model: Any) -> None:
        """An evaluation has ended with these metrics."""
        scene, self._scene = self._scene, None
        found = {"calls": 1, "training": False} | (scene.ended() if scene else {})
        measured = {name: float(value) for name, value in metrics.items()}
        found["loss"] = measured.get("loss")
        accuracy = next((measured[n] for n in _ACCURACIES if n in measured), None)
        found["accuracy"] = accuracy if accuracy is not None else found.get("accuracy")
        found["scalars"] = [
            {
                "line": self._line,
                "text": "",
                "name": name,
                "count": 1,
                "mean": number,
                "last": number,
            }
            for name, number in measured.items()
        ]
        where = {"place": self._place, "iteration": self._iteration}
        weights = self._fingerprints(model)
        self.records.emit("evaluation", **{**found, **where, "weights": weights})

    # With the backend torch -----------------------------------------------------------------------

    def layer_called(self, output: Any, layer: Any, *args: Any, **kwargs: Any) -> None:
        """A layer has given its output, of what another one made."""
        if self._scene is not None and self._scene.looking:
            self._look_at_layer(layer, args, output)

    @_safe
    def _look_at_layer(self, layer: Any, args: Any, output: Any) -> None:
        path = self._paths.get(id(layer))
        if path is not None and not any(True for _ in inside(layer)):
            activation = activation_of(layer) or "linear"
            self._scene.layer_called(path, type(layer).__name__, output, self._scene.source(args))
            if activation != "linear":
                # As torch has it: what a layer gives goes through a function.
                self._scene.layer_called(f"{path}:{activation}", activation, output, path)

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
        scene.model_given(f"{self._number(model)}/", not scene.evaluating, [given.get("x")])
        if output is None or target is None or isinstance(output, (dict, list, tuple)):
            return
        name = loss_of(model, self._keras)[0]
        output = output.detach()
        arguments = {"input": output, "target": as_compared(target, output, name)}
        scene.loss_called(name, loss.detach(), arguments)

    def _new_scene(self, *, evaluating: bool, looking: bool) -> Any:
        if self._keras.backend.backend() != "torch":
            return None
        from epochzero.run.watch.child.scene import Scene

        return Scene(evaluating=evaluating, looking=looking)

    # Models ---------------------------------------------------------------------------------------

    def _number(self, model: Any) -> int:
        return next((n for n, ref in enumerate(self._models) if ref() is model), 0)

    def _weights(self, model: Any) -> Iterator[tuple[str, Any, Any]]:
        """Name, values and variable of all weights of a model."""
        number = self._number(model)
        for path, layer in layers_of(model):
            for variable in weights_of(layer):
                values = self._keras.ops.convert_to_numpy(variable)
                if values.dtype.kind == "f" and values.size:
                    yield f"{number}/{path}.{variable.name}", values, variable

    def _fingerprints(self, model: Any) -> list[float]:
        described = self._evaluation <= DESCRIBED_EVALUATIONS
        return [fingerprint(v) for _, v, _ in self._weights(model)] if described else []

    @_safe
    def restored(self, model: Any) -> None:
        """Record that a callback or the program restored weights."""
        is_model = isinstance(model, self._keras.Model) and self._iteration
        weights = self._fingerprints(model) if is_model else []
        if weights:
            of = {"iteration": self._iteration, "evaluations": self._evaluation, "place": place()}
            self.records.emit("load", what="model", weights=weights, **of)

    def _tell_model(self, model: Any) -> None:
        """The model once, and again when what of it is trained has changed."""
        number = self._number(model)
        state = [bool(v.trainable) for _, layer in layers_of(model) for v in weights_of(layer)]
        if self._told.get(number) == state:
            return
        self._told[number] = state
        layers, parameters = [], []
        for path, layer in layers_of(model):
            self._paths[id(layer)] = f"{number}/{path}"
            layers.append({
                "path": path,
                "class": type(layer).__name__,
                "library": type(layer).__module__.startswith("keras."),
                "leaf": not any(True for _ in inside(layer)),
                "settings": settings_of(layer),
                "parameters": [value.name for value in weights_of(layer)],
                "place": self._made.get(layer),
                "called": True,
                "training": True,
            })  # fmt: skip
        for name, values, variable in self._weights(model):
            flat = few(values)
            parameters.append({
                "name": name.partition("/")[2],
                "shape": shape_of(variable.name, values.shape),
                "trainable": bool(variable.trainable),
                "held": bool(variable.trainable),
                **numbers(flat),
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


def _callback_class(keras: Any, watch: KerasInstrumentation) -> Any:
    """A callback that reports to a watch; keras is known only now."""

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
            watch.evaluation_ended(dict(logs or {}), self.model)

    return Watching


def _kind(value: Any) -> str:
    return type(value).__name__


def _after(function: Callable[..., Any], notify: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        notify(result, *args, **kwargs)
        return result

    # Keras reads the arguments of constructors when it stores an object, and does not follow `__wrapped__`.
    called.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return called
