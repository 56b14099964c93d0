"""The parts of a job in Keras, TensorFlow, JAX, scikit-learn and boosting, which know no hooks as torch does.

A step of them is traced once and then runs compiled. So that a loop around it can be shortened, each
call of what is compiled counts as work, and as a step where its trace stepped an optimizer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from epochzero.check.dryrun.child.loops import Runtime
from epochzero.check.dryrun.child.phases import Phases

_Function = Callable[..., Any]
OPERATIONS = 2e11
"""Of floating point, which take the CPU a few seconds."""
INPUT_BYTES = 1 << 20
"""What has less is not asked for its operations, which takes time too."""
ROUNDS = 3
"""Of boosting, which are its epochs."""
ROWS = 5000
ROWS_OF_A_CLASS = 10
"""As many as cross-validation may want."""
_OF_COMPILED = ("clear_cache", "eval_shape", "lower", "trace")


def watched(
    phases: Phases, runtime: Runtime, devices: int
) -> dict[str, Callable[[ModuleType], None]]:
    """What is done to each library's module once it is imported.

    Args:
        phases: to which the parts are reported.
        runtime: of the loops.
        devices: that JAX sees, all of them this machine's CPU.
    """
    traced = _Traced(phases, runtime, devices)
    return {
        "flax.linen.module": traced.linen,
        "flax.serialization": traced.serialization,
        "jax": traced.jax,
        "keras.src.layers.layer": traced.layers,
        "keras.src.optimizers.base_optimizer": traced.optimizers,
        "keras.src.saving.saving_api": traced.keras_files,
        "lightgbm.basic": traced.boosters,
        "lightgbm.engine": traced.lightgbm,
        "optax": traced.optax,
        "sklearn.base": traced.estimators,
        "tensorflow.python.checkpoint.checkpoint": traced.checkpoints,
        "tensorflow.python.data.ops.iterator_ops": traced.batches,
        "tensorflow.python.eager.backprop": traced.tape,
        "tensorflow.python.eager.polymorphic_function.polymorphic_function": traced.functions,
        "xgboost.core": traced.boosters,
        "xgboost.training": traced.boosting,
    }


class _Traced:
    def __init__(self, phases: Phases, runtime: Runtime, devices: int) -> None:
        self._phases = phases
        self._runtime = runtime
        self._devices = devices
        self._fits = 0

    # -- Keras ---------------------------------------------------------------------------------

    def layers(self, module: Any) -> None:
        """A call of a layer on values; one on symbols builds a model."""
        call, symbolic = module.Layer.__call__, module.any_symbolic_tensors

        @functools.wraps(call)
        def called(layer: Any, *arguments: Any, **options: Any) -> Any:
            if symbolic(arguments, options):
                return call(layer, *arguments, **options)
            trains = options.get("training", not self._runtime.steps)
            with self._phases.calling("forward" if trains else "validation"):
                return call(layer, *arguments, **options)

        module.Layer.__call__ = called

    def optimizers(self, module: Any) -> None:
        """``apply``, which every way to step an optimizer ends in."""
        kind = module.BaseOptimizer
        kind.apply = self._stepping(kind.apply)

    def keras_files(self, module: Any) -> None:
        """Whole models and weights."""
        for name in ("save_model", "save_weights"):
            setattr(module, name, self._phases.saving(getattr(module, name)))
        for name in ("load_model", "load_weights"):
            setattr(module, name, self._phases.telling(getattr(module, name), "load"))

    # -- TensorFlow ----------------------------------------------------------------------------

    def batches(self, module: Any) -> None:
        """Batches that the user's code draws from a ``tf.data.Dataset``."""
        draw = module.OwnedIterator.__next__

        @functools.wraps(draw)
        def drawn(batches: Any) -> Any:
            self._phases.draws()
            return draw(batches)

        module.OwnedIterator.__next__ = drawn

    def functions(self, module: Any) -> None:
        """``tf.function``."""
        module.Function.__call__ = self._compiled(module.Function.__call__)

    def tape(self, module: Any) -> None:
        """``GradientTape.gradient``."""
        kind = module.GradientTape
        kind.gradient = self._phases.telling(kind.gradient, "backward")

    def checkpoints(self, module: Any) -> None:
        """``tf.train.Checkpoint``, which writes several files by a prefix."""
        kind = module.Checkpoint
        for name, part in (
            ("write", "save"),
            ("save", "save"),
            ("read", "load"),
            ("restore", "load"),
        ):
            setattr(kind, name, self._phases.telling(getattr(kind, name), part))

    # -- JAX -----------------------------------------------------------------------------------

    def jax(self, module: Any) -> None:
        """``jit`` and ``pmap``, ``grad`` and ``value_and_grad``; as many devices as there will be."""
        if self._devices > 1:
            module.config.update("jax_num_cpu_devices", self._devices)
        for name in ("jit", "pmap"):
            setattr(module, name, self._compiling(getattr(module, name)))
        for name in ("grad", "value_and_grad"):
            setattr(module, name, self._differentiating(getattr(module, name)))

    def linen(self, module: Any) -> None:
        """``Module.apply``, by which a model of Flax is called."""
        kind = module.Module
        apply = kind.apply

        @functools.wraps(apply)
        def applied(*arguments: Any, **options: Any) -> Any:
            with self._phases.calling("validation" if self._runtime.steps else "forward"):
                return apply(*arguments, **options)

        kind.apply = applied

    def serialization(self, module: Any) -> None:
        """A state to bytes and back."""
        module.to_bytes = self._phases.telling(module.to_bytes, "save")
        module.from_bytes = self._phases.telling(module.from_bytes, "load")

    def optax(self, module: Any) -> None:
        """``apply_updates``, which the optimizers of Flax call too."""
        module.apply_updates = self._stepping(module.apply_updates)

    # -- scikit-learn --------------------------------------------------------------------------

    def estimators(self, module: Any) -> None:
        """``fit`` of what predicts, which is compiled code."""
        context = module._fit_context

        @functools.wraps(context)
        def fitting(**options: Any) -> Any:
            decorate = context(**options)
            return lambda fit: self._fitting(decorate(fit))

        module._fit_context = fitting

    def _fitting(self, fit: _Function) -> _Function:
        """A fit to few rows where it is given their answers; what has none, may have one for each row."""

        @functools.wraps(fit)
        def fitted(estimator: Any, *given: Any, **options: Any) -> Any:
            if not hasattr(type(estimator), "predict"):
                return fit(estimator, *given, **options)
            passed = {**dict(zip(("X", "y"), given)), **options}  # noqa: B905
            # What is fitted inside another has its rows already.
            rows = None if self._fits else self._rows(estimator, passed.get("X"), passed.get("y"))
            if rows is not None:
                many = passed["X"].shape[0]
                given = tuple(_at(value, rows, many) for value in given)
                options = {name: _at(value, rows, many) for name, value in options.items()}
            self._fits += 1
            try:
                return fit(estimator, *given, **options)
            finally:
                self._fits -= 1
                self._runtime.steps += 1

        return fitted

    def _rows(self, estimator: Any, inputs: Any, y: Any) -> Any:
        """The rows to which an estimator is fitted; None for all."""
        name = type(estimator).__name__
        many = getattr(inputs, "shape", (0,))[0]
        most = ROWS * self._runtime.often
        if self._runtime.whole or y is None or many <= most:
            if y is None:
                self._phases.assume(f"{name} is fitted to all of its input")
            return None
        self._phases.shortened(f"{name} is fitted to about {most:,} of {many:,} rows", most)
        return _some(y, many, most)

    # -- Boosting ------------------------------------------------------------------------------

    def boosting(self, module: Any) -> None:
        """``train`` and ``cv`` of XGBoost and LightGBM: a few rounds, on all rows."""
        for name in ("train", "cv"):
            if hasattr(module, name):
                setattr(module, name, self._boosted(getattr(module, name)))

    def lightgbm(self, module: Any) -> None:
        """The same, where the number of rounds may stand among the parameters, by many names."""
        self.boosting(module)
        names = module._ConfigAliases.get("num_iterations")
        for name in ("train", "cv"):
            setattr(module, name, _rounds_apart(getattr(module, name), names))

    def _boosted(self, train: _Function) -> _Function:
        parameters = inspect.signature(train)

        @functools.wraps(train)
        def boosted(*arguments: Any, **options: Any) -> Any:
            bound = parameters.bind(*arguments, **options)
            bound.apply_defaults()
            rounds, most = bound.arguments["num_boost_round"], ROUNDS * self._runtime.often
            if rounds > most and not self._runtime.whole:
                self._phases.shortened(f"boosting with {most} of {rounds:,} rounds", most)
                bound.arguments["num_boost_round"] = most
            self._phases.reach("forward")
            answer = train(*bound.args, **bound.kwargs)
            self._phases.stepped()
            return answer

        return boosted

    def boosters(self, module: Any) -> None:
        """What they train is saved and loaded."""
        kind = module.Booster
        for name, part in (("save_model", "save"), ("load_model", "load")):
            if hasattr(kind, name):
                setattr(kind, name, self._phases.telling(getattr(kind, name), part))

    # -- What they share -----------------------------------------------------------------------

    def _stepping(self, step: _Function) -> _Function:
        @functools.wraps(step)
        def stepping(*arguments: Any, **options: Any) -> Any:
            self._phases.stepped()
            return step(*arguments, **options)

        return stepping

    def _differentiating(self, transform: _Function) -> _Function:
        @functools.wraps(transform)
        def transformed(*arguments: Any, **options: Any) -> Any:
            made = transform(*arguments, **options)
            for part in ("backward", "forward"):
                made = self._phases.telling(made, part)
            return self._compiled(made)

        return transformed

    def _compiling(self, compile_: _Function) -> _Function:
        @functools.wraps(compile_)
        def compiling(*arguments: Any, **options: Any) -> Any:
            made = compile_(*arguments, **options)
            # Without a function to compile, it answers with a decorator.
            return self._compiled(made) if arguments else lambda fun: self._compiled(made(fun))

        return compiling

    def _shapes(self, function: Any, arguments: Any, options: Any) -> Any:
        """The shapes of what a compiled function answers, where to compute it would take too long."""
        if self._runtime.whole or not hasattr(function, "eval_shape"):
            return None
        operations = _operations(function, arguments, options)
        if operations < OPERATIONS:
            return None
        passed = f"a call of {operations:.0e} operations returns ones of the right shape"
        self._phases.shortened(passed, 1)
        return function.eval_shape(*arguments, **options)

    def _compiled(self, function: _Function) -> _Function:
        """A function whose calls are work, with all that a compiled one can do besides."""
        steps = 0

        @functools.wraps(function)
        def called(*arguments: Any, **options: Any) -> Any:
            nonlocal steps
            before = self._runtime.steps
            is_outermost = not self._runtime.depth
            with self._phases.calling():
                shapes = self._shapes(function, arguments, options) if is_outermost else None
                answer = function(*arguments, **options) if shapes is None else _assumed(shapes)
            steps = max(steps, self._runtime.steps - before)
            self._runtime.steps = before + steps
            return answer

        for name in _OF_COMPILED:
            if hasattr(function, name):
                setattr(called, name, getattr(function, name))
        return called


def _operations(function: Any, arguments: Any, options: Any) -> float:
    """What a call of a compiled function of JAX computes, as its compiler counts; 0 where it has little."""
    leaves = import_module("jax").tree.leaves((arguments, options))
    if (
        not hasattr(function, "lower")
        or sum(getattr(leaf, "nbytes", 0) for leaf in leaves) < INPUT_BYTES
    ):
        return 0.0
    try:
        return float(function.lower(*arguments, **options).cost_analysis()["flops"])
    except (AttributeError, KeyError, TypeError, NotImplementedError):
        return 0.0


def _assumed(shapes: Any) -> Any:
    """Ones in the place of each shape, whole numbers as zeros: as of a pretended GPU."""
    jax = import_module("jax")

    def values(value: Any) -> Any:
        whole = not jax.numpy.issubdtype(value.dtype, jax.numpy.inexact)
        return jax.numpy.full(value.shape, 0 if whole else 1, value.dtype)

    return jax.tree.map(values, shapes)


def _rounds_apart(train: _Function, names: Iterable[str]) -> _Function:
    """``train(params, ...)`` with the number of rounds as an argument, wherever it was given."""

    @functools.wraps(train)
    def trained(params: Any, *arguments: Any, **options: Any) -> Any:
        passed = [params[name] for name in names if name in params]
        if passed:
            params = {name: value for name, value in params.items() if name not in names}
            options["num_boost_round"] = passed[0]
            arguments = arguments[:1]
        return train(params, *arguments, **options)

    return trained


def _some(y: Any, many: int, most: int) -> Any:
    """Rows at even distances, and some of each class."""
    numpy = import_module("numpy")
    kept = numpy.arange(0, many, -(-many // most))
    kind = import_module("sklearn.utils.multiclass").type_of_target(y)
    if kind not in ("binary", "multiclass"):
        return kept
    _, classes = numpy.unique(numpy.asarray(y).ravel(), return_inverse=True)
    order = numpy.argsort(classes, kind="stable")
    first = numpy.searchsorted(classes[order], classes[order])
    of_classes = order[numpy.arange(many) - first < ROWS_OF_A_CLASS]
    return numpy.union1d(kept, of_classes)


def _at(values: Any, rows: Any, many: int) -> Any:
    """Some rows of what has as many; anything else as it is."""
    size = len(values) if isinstance(values, list) else (getattr(values, "shape", None) or (0,))[0]
    return import_module("sklearn.utils")._safe_indexing(values, rows) if size == many else values
