"""The parts of a job in Keras, TensorFlow, JAX and scikit-learn, which know no hooks as torch does.

A step of them is traced once and then runs compiled. So that a loop around it can be shortened, each
call of what is compiled counts as work, and as a step where its trace stepped an optimizer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from epochzero.check.dryrun.child.loops import Runtime
from epochzero.check.dryrun.child.phases import Phases

__all__ = ["watched"]

_Function = Callable[..., Any]
_OF_COMPILED = ("clear_cache", "eval_shape", "lower", "trace")


def watched(
    phases: Phases, runtime: Runtime, devices: int
) -> dict[str, Callable[[ModuleType], None]]:
    """What is done to each library's module once it is imported.

    Args:
        phases: to which the parts are told.
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
        "optax": traced.optax,
        "sklearn.base": traced.estimators,
        "tensorflow.python.checkpoint.checkpoint": traced.checkpoints,
        "tensorflow.python.data.ops.iterator_ops": traced.batches,
        "tensorflow.python.eager.backprop": traced.tape,
        "tensorflow.python.eager.polymorphic_function.polymorphic_function": traced.functions,
    }


class _Traced:
    def __init__(self, phases: Phases, runtime: Runtime, devices: int) -> None:
        self._phases = phases
        self._runtime = runtime
        self._devices = devices

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
        """``fit`` of what predicts; it is compiled code that runs whole."""
        context = module._fit_context

        @functools.wraps(context)
        def fitting(**options: Any) -> Any:
            decorate = context(**options)
            return lambda fit: self._fitting(decorate(fit))

        module._fit_context = fitting

    def _fitting(self, fit: _Function) -> _Function:
        @functools.wraps(fit)
        def fitted(estimator: Any, *arguments: Any, **options: Any) -> Any:
            if not hasattr(type(estimator), "predict"):
                return fit(estimator, *arguments, **options)
            self._phases.assume(
                f"{type(estimator).__name__} is fitted whole, on all that it is given"
            )
            answer = fit(estimator, *arguments, **options)
            self._runtime.steps += 1
            return answer

        return fitted

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

    def _compiled(self, function: _Function) -> _Function:
        """A function whose calls are work, with all that a compiled one can do besides."""
        steps = 0

        @functools.wraps(function)
        def called(*arguments: Any, **options: Any) -> Any:
            nonlocal steps
            before = self._runtime.steps
            with self._phases.calling():
                answer = function(*arguments, **options)
            steps = max(steps, self._runtime.steps - before)
            self._runtime.steps = before + steps
            return answer

        for name in _OF_COMPILED:
            if hasattr(function, name):
                setattr(called, name, getattr(function, name))
        return called
