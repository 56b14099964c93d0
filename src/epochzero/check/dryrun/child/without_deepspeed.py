"""Libraries that are configured to use DeepSpeed, if it is not installed: they train without it.

The model is in half precision as with it, on a pretended GPU. What ZeRO makes of the memory is reckoned
afterwards, from the configuration that is reported.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from epochzero.check.dryrun.child.phases import Phases

ASKED = "ACCELERATE_USE_DEEPSPEED"
PRECISION = "ACCELERATE_MIXED_PRECISION"
_ENGINE = "epochzero.check.dryrun.child.engine"
_WITHOUT = "DeepSpeed is not installed: the model is trained without it"


def adjusted(phases: Phases) -> dict[str, Callable[[ModuleType], None]]:
    """What is done to each library's module once it is imported; nothing where DeepSpeed is installed.

    Args:
        phases: to which the configuration is reported.
    """
    if importlib.util.find_spec("deepspeed"):
        return {}
    without = _Without(phases)
    return {
        "accelerate.accelerator": without.accelerator,
        "accelerate.utils": _with_dummies,
        "transformers.trainer": without.trainer,
        "transformers.training_args": without.arguments,
    }


class _Without:
    """What is trained without DeepSpeed, by the configuration that was asked for last."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._config: dict[str, Any] = {}

    def accelerator(self, module: Any) -> None:
        """``Accelerator(deepspeed_plugin=...)``, or one given to `accelerate launch`."""
        kind = module.Accelerator
        make, prepare = kind.__init__, kind.prepare
        parameters = inspect.signature(make)

        @functools.wraps(make)
        def made(*arguments: Any, **options: Any) -> None:
            bound = parameters.bind(*arguments, **options)
            given = bound.arguments
            plugins = [given.pop(name, None) for name in ("deepspeed_plugin", "deepspeed_plugins")]
            if _is_asked() or any(plugins):
                self._plug(module, next(filter(None, plugins), None), given)
            make(*bound.args, **bound.kwargs)

        @functools.wraps(prepare)
        def prepared(accelerator: Any, *given: Any, **options: Any) -> Any:
            ready = self._ready(given) if self._config else given
            return prepare(accelerator, *ready, **options)

        kind.__init__, kind.prepare = made, prepared

    def _plug(self, module: Any, plugins: Any, given: dict[str, Any]) -> None:
        """Keep the configuration of the first plugin; the accelerator is made without."""
        plugin = next(iter(plugins.values())) if isinstance(plugins, dict) else plugins
        plugin = plugin or module.DeepSpeedPlugin()
        precision = given.get("mixed_precision") or os.environ.get(PRECISION, "no")
        plugin.set_mixed_precision(str(precision))
        self._config = plugin.deepspeed_config
        accumulated = self._config.get("gradient_accumulation_steps")
        if isinstance(accumulated, int):
            given["gradient_accumulation_steps"] = accumulated
        given["mixed_precision"] = "bf16" if self._half and self._phases.real else "no"
        # The job reads its configuration, and may change it.
        module.AcceleratorState.deepspeed_plugin = property(lambda _: plugin)
        self._phases.assume(_WITHOUT)

    def _ready(self, given: Sequence[Any]) -> list[Any]:
        """What is prepared: the model as DeepSpeed has it, what only stands for an optimizer made one."""
        torch, engine = import_module("torch"), import_module(_ENGINE)
        model = next((value for value in given if isinstance(value, torch.nn.Module)), None)
        if model is not None:
            self._takes(model)
        ready = [
            engine.optimizer_of(self._config, value.params) if _is_dummy(value, "Optim") else value
            for value in given
        ]
        optimizer = next((v for v in ready if isinstance(v, torch.optim.Optimizer)), None)
        constant = functools.partial(torch.optim.lr_scheduler.LambdaLR, lr_lambda=lambda _: 1.0)
        return [
            (value.lr_scheduler_callable or constant)(optimizer)
            if _is_dummy(value, "Scheduler")
            else value
            for value in ready
        ]

    def arguments(self, module: Any) -> None:
        """``TrainingArguments(deepspeed=...)``, or what `accelerate launch` was given."""
        check = module.TrainingArguments.__post_init__

        @functools.wraps(check)
        def checked(given: Any) -> None:
            if _is_asked() or given.deepspeed:
                self._config = _configuration(given)
                given.deepspeed = None
                if not self._phases.real:
                    given.fp16 = given.bf16 = False
                    os.environ[PRECISION] = "no"
                self._phases.assume(_WITHOUT)
            check(given)

        module.TrainingArguments.__post_init__ = checked

    def trainer(self, module: Any) -> None:
        """The trainer of Transformers, which has such arguments."""
        train = module.Trainer.train

        @functools.wraps(train)
        def trained(trainer: Any, *arguments: Any, **options: Any) -> Any:
            if self._config:
                self._takes(trainer.model)
            return train(trainer, *arguments, **options)

        module.Trainer.train = trained

    @property
    def _half(self) -> Any:
        """The half precision that the model is to be in; None for single."""
        return import_module(_ENGINE).half_of(self._config)

    def _takes(self, model: Any) -> None:
        """Tell the configuration, with what follows from the model; have that in half precision."""
        self._phases.configured(_filled(self._config, model))
        half = self._half
        if half and not self._phases.real:
            model.to(half)
            model.register_forward_pre_hook(functools.partial(_cast, half), with_kwargs=True)


def _with_dummies(module: Any) -> None:
    """What stands for an optimizer or a schedule is exported only where DeepSpeed is installed."""
    defined = import_module("accelerate.utils.deepspeed")
    for name in ("DummyOptim", "DummyScheduler"):
        setattr(module, name, getattr(defined, name))


def _is_asked() -> bool:
    """Whether `accelerate launch` asks for DeepSpeed; asked once, since the library looks there too."""
    return os.environ.pop(ASKED, "").lower() == "true"


def _is_dummy(value: Any, ending: str) -> bool:
    """Whether a value of Accelerate stands for what DeepSpeed's configuration describes."""
    return type(value).__name__ == f"Dummy{ending}"


def _cast(half: Any, model: Any, inputs: Any, options: Any) -> Any:
    """What a model is given, in its precision."""
    torch = import_module("torch")

    def cast(value: Any) -> Any:
        return value.to(half) if value.is_floating_point() else value

    mapped: Any = import_module("torch.utils._pytree").tree_map_only(
        torch.Tensor, cast, (inputs, options)
    )
    return mapped


def _configuration(given: Any) -> dict[str, Any]:
    """DeepSpeed's of a trainer, whose precision may be left to the arguments."""
    config = given.deepspeed
    if not config:
        plugin = import_module("accelerate.utils").DeepSpeedPlugin()
        named = next((name for name in ("fp16", "bf16") if getattr(given, name)), "no")
        plugin.set_mixed_precision(os.environ.get(PRECISION, "no") if named == "no" else named)
        config = plugin.deepspeed_config
    if not isinstance(config, dict):
        with open(config, encoding="utf-8") as file:
            config = json.load(file)
    asked = {name: config.get(name) or {} for name in ("fp16", "bf16")}
    for name, part in asked.items():
        if part.get("enabled") == "auto":
            asked[name] = {**part, "enabled": bool(getattr(given, name))}
    return {**config, **asked}


def _filled(config: dict[str, Any], model: Any) -> dict[str, Any]:
    """The configuration with what Accelerate and the trainer take from the model for ``auto``.

    Source: ``trainer_config_finalize`` of ``transformers/integrations/deepspeed.py``.
    """
    width = getattr(getattr(model, "config", None), "hidden_size", None)
    zero = config.get("zero_optimization")
    if not isinstance(zero, dict) or not isinstance(width, int):
        return config
    sizes = {
        "reduce_bucket_size": width * width,
        "stage3_prefetch_bucket_size": int(0.9 * width * width),
        "stage3_param_persistence_threshold": 10 * width,
    }
    auto = {name: size for name, size in sizes.items() if zero.get(name) == "auto"}
    return {**config, "zero_optimization": {**zero, **auto}}
