"""Trainers whose loops are not the user's, shortened.

Unlike Lightning's ``fast_dev_run`` everything else stays on: loggers, checkpoints and callbacks are
what fails on the platform. Where loops are to be run whole, so are theirs. Keras has its loops in
Python; they are limited as the user's own are.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

from epochzero.check.dryrun.child.frames import Roots
from epochzero.check.dryrun.child.loops import Loop, Runtime
from epochzero.check.dryrun.child.phases import Phases
from epochzero.check.dryrun.child.ranks import LaunchesRanks

BATCHES = 2
STEPS = 3
_OF_A_RANK = {"LOCAL_RANK", "SLURM_PROCID"}
KERAS_BACKENDS = ("jax", "tensorflow", "torch")


def adjusted(
    phases: Phases, runtime: Runtime, roots: Roots
) -> dict[str, Callable[[ModuleType], None]]:
    """What is done to each trainer's module once it is imported."""
    frameworks = _Frameworks(phases, runtime, roots)
    backends = {f"keras.src.backend.{name}.trainer": frameworks.keras for name in KERAS_BACKENDS}
    return {
        "lightning.pytorch.trainer.trainer": frameworks.lightning,
        "pytorch_lightning.trainer.trainer": frameworks.lightning,
        "transformers.trainer": frameworks.transformers,
        "keras.src.optimizers.base_optimizer": _steps_as_of_torch,
        "keras.src.trainers.epoch_iterator": frameworks.keras_batches,
        "torch._compile": _without_compiler,
        "torch.optim.optimizer": _steps_without_compiler,
        **backends,
    }


def _without_compiler(module: Any) -> None:
    """Functions that a compiler must leave alone call it only if the job has imported it.

    Importing the compiler takes as long as importing torch, and each optimizer would do it.
    """
    leave_alone = module._disable_dynamo

    def left_alone(function: Any = None, recursive: bool = True) -> Any:
        if function is None:
            return functools.partial(left_alone, recursive=recursive)
        return _if_compiling(leave_alone(function, recursive), function)

    module._disable_dynamo = left_alone


def _steps_without_compiler(module: Any) -> None:
    """The same for the steps of optimizers, which compute gradients only if they are differentiable."""
    with_gradients = module._use_grad_for_differentiable

    def wrapped(step: Any) -> Any:
        def stepped(optimizer: Any, *arguments: Any, **options: Any) -> Any:
            with module.torch.set_grad_enabled(optimizer.defaults["differentiable"]):
                return step(optimizer, *arguments, **options)

        return _if_compiling(with_gradients(step), stepped)

    module._use_grad_for_differentiable = wrapped


def _if_compiling(
    compiled: Callable[..., Any], otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(compiled)
    def called(*arguments: Any, **options: Any) -> Any:
        chosen = compiled if "torch._dynamo" in sys.modules else otherwise
        return chosen(*arguments, **options)

    return called


def _launch(options: Mapping[str, Any]) -> None:
    """Raises `LaunchesRanks` if Lightning would start processes for several devices of this machine."""
    devices = options.get("devices")
    count = len(devices) if isinstance(devices, (list, tuple)) else devices
    if isinstance(count, int) and count > 1 and not os.environ.keys() & _OF_A_RANK:
        raise LaunchesRanks(count)


def _steps_as_of_torch(module: Any) -> None:
    """An optimizer of Keras on torch is none of torch's: the hooks of those are called for it."""
    if module.backend.backend() != "torch":
        return
    apply = module.BaseOptimizer.apply
    hooks = import_module("torch.optim.optimizer")

    @functools.wraps(apply)
    def applied(optimizer: Any, *arguments: Any, **options: Any) -> None:
        for hook in tuple(hooks._global_optimizer_pre_hooks.values()):
            hook(_as_of_torch(optimizer), arguments, options)
        apply(optimizer, *arguments, **options)
        for hook in tuple(hooks._global_optimizer_post_hooks.values()):
            hook(_as_of_torch(optimizer), arguments, options)

    module.BaseOptimizer.apply = applied


def _as_of_torch(optimizer: Any) -> SimpleNamespace:
    """What the hooks read; before its first step, it knows no variables that it trains."""
    trained = getattr(optimizer, "_trainable_variables", None) or []
    states = {variable.path: variable.value for variable in optimizer.variables}
    return SimpleNamespace(
        param_groups=[{"params": [variable.value for variable in trained]}],
        state={optimizer: states},
    )


class _Frameworks:
    def __init__(self, phases: Phases, runtime: Runtime, roots: Roots) -> None:
        self._phases = phases
        self._runtime = runtime
        self._roots = roots
        self._batches, self._steps = BATCHES * runtime.often, STEPS * runtime.often

    def lightning(self, module: Any) -> None:
        """``Trainer(...)``: a few batches of each loader, few epochs, checkpoints in each, on the CPU."""
        make, keep = module.Trainer.__init__, module.Trainer.save_checkpoint

        @functools.wraps(keep)
        def kept(trainer: Any, filepath: Any, *arguments: Any, **options: Any) -> Any:
            keep(trainer, filepath, *arguments, **options)
            self._phases.saved.append(os.path.abspath(filepath))

        @functools.wraps(make)
        def made(trainer: Any, *arguments: Any, **options: Any) -> None:
            if self._phases.real:
                _launch(options)
            if not self._runtime.whole:
                self._few_of_lightning(options)
            if self._phases.real and options.get("accelerator") in ("gpu", "cuda"):
                options.update(accelerator="cpu", strategy="auto", precision=None)
            if options.get("accelerator", "auto") in ("auto", "cpu"):
                world = int(os.environ.get("WORLD_SIZE", "1")) if self._phases.real else 1
                options["devices"] = local = int(os.environ.get("LOCAL_WORLD_SIZE", world))
                options["num_nodes"] = max(1, world // local)
            make(trainer, *arguments, **options)
            for keeper in () if self._runtime.whole else trainer.checkpoint_callbacks:
                for name, most in (("_every_n_epochs", 1), ("_every_n_train_steps", BATCHES)):
                    if hasattr(keeper, name):
                        setattr(keeper, name, min(getattr(keeper, name), most))

        module.Trainer.__init__, module.Trainer.save_checkpoint = made, kept

    def _few_of_lightning(self, options: dict[str, Any]) -> None:
        if options.get("max_epochs") != 0:
            options["max_epochs"] = min(options.get("max_epochs") or self._steps, self._steps)
        if (options.get("max_steps") or -1) > self._steps:
            options["max_steps"] = self._steps
        for name in ("train", "val", "test", "predict"):
            options.setdefault(f"limit_{name}_batches", self._batches)
        every = options.get("val_check_interval")
        if isinstance(every, int) and every > BATCHES:
            options["val_check_interval"] = BATCHES
        if options.get("check_val_every_n_epoch"):
            options["check_val_every_n_epoch"] = 1
        options["log_every_n_steps"] = 1
        self._phases.shortened(f"Trainer with {self._batches} batches per loader", self._batches)

    def transformers(self, module: Any) -> None:
        """``Trainer(...)``: a few steps, with evaluation and saving pulled into them."""
        train = module.Trainer.train

        @functools.wraps(train)
        def trained(trainer: Any, *arguments: Any, **options: Any) -> Any:
            given, most = trainer.args, self._steps
            if self._runtime.whole:
                return train(trainer, *arguments, **options)
            given.max_steps = min(given.max_steps, most) if given.max_steps > 0 else most
            for name in ("eval", "save", "logging"):
                strategy = getattr(given, f"{name}_strategy", None)
                if strategy is not None and strategy != "no":
                    setattr(given, f"{name}_strategy", type(strategy)("steps"))
                    setattr(given, f"{name}_steps", BATCHES)
            self._phases.shortened(f"Trainer with {most} steps", self._batches)
            return train(trainer, *arguments, **options)

        keep, save_model = module.Trainer._save_checkpoint, module.Trainer.save_model

        @functools.wraps(keep)
        def kept(trainer: Any, *arguments: Any, **options: Any) -> Any:
            keep(trainer, *arguments, **options)
            folder = f"checkpoint-{trainer.state.global_step}"
            self._phases.saved.append(os.path.abspath(f"{trainer.args.output_dir}/{folder}"))

        @functools.wraps(save_model)
        def model_saved(trainer: Any, *arguments: Any, **options: Any) -> Any:
            before = len(self._phases.saved)
            save_model(trainer, *arguments, **options)
            # A model without the trainer's state is nothing to go on from.
            del self._phases.saved[before:]

        module.Trainer.train = trained
        module.Trainer._save_checkpoint, module.Trainer.save_model = kept, model_saved

    def keras(self, module: Any) -> None:
        """A backend's trainer: the epochs of ``fit``, and ``predict``."""

        def epochs(*bounds: int) -> Any:
            every = range(*bounds)
            # Those of the epochs are the only two bounds in the module.
            return self._loop().over(every) if len(bounds) == 2 else every

        module.range = epochs
        for kind in vars(module).values():
            if isinstance(kind, type) and "predict" in vars(kind):
                trainer: Any = kind
                trainer.predict = _answered(trainer.predict)

    def keras_batches(self, module: Any) -> None:
        """The batches of ``fit``, ``evaluate`` and ``predict``."""
        every = module.EpochIterator._enumerate_iterator

        @functools.wraps(every)
        def few(batches: Any) -> Iterator[Any]:
            steps = every(batches)
            yield from self._loop().over(map(self._drawn, steps))
            if steps.gi_frame is not None:
                batches.data_adapter.on_epoch_end()

        module.EpochIterator._enumerate_iterator = few

    def _loop(self) -> Loop:
        """The limiter of a loop of a library, at the user's line that comes to it."""
        path, line = self._roots.place()
        return self._runtime.loop(path, line, line, "whole", ())

    def _drawn(self, step: Any) -> Any:
        self._phases.draws()
        return step


def _answered(predict: Callable[..., Any]) -> Callable[..., Any]:
    """``predict`` of Keras with an answer for each sample: those of few batches, repeated."""

    @functools.wraps(predict)
    def filled(model: Any, x: Any, *arguments: Any, **options: Any) -> Any:
        answer = predict(model, x, *arguments, **options)
        tree, numpy = import_module("keras.src.tree"), import_module("numpy")
        samples = getattr(tree.flatten(x)[0], "shape", None)
        if not samples or options.get("steps"):
            return answer
        return tree.map_structure(lambda a: numpy.resize(a, (samples[0], *a.shape[1:])), answer)

    return filled
