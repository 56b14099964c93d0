"""An engine with the methods of DeepSpeed's, for one process and without ZeRO.

The job's own code runs as with DeepSpeed: the model in half precision, gradients accumulated and clipped,
optimizer and schedule stepped, checkpoints saved and loaded. What ZeRO makes of its memory is reckoned
afterwards, from the configuration. What is asked for besides counts as a library that is not installed.
"""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Optional

import torch
import torch.distributed as dist

_HALF = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Engine(torch.nn.Module):
    """What `deepspeed.initialize` gives: the model, with what trains it.

    Attributes:
        module, optimizer, lr_scheduler: As given, or as the configuration says.
        global_steps: Steps of the optimizer.
    """

    def __init__(
        self, model: torch.nn.Module, optimizer: Any, scheduler: Any, config: dict[str, Any]
    ) -> None:
        super().__init__()
        self.module = model
        self._half = half_of(config)
        self.optimizer, self.lr_scheduler, self._config = optimizer, scheduler, config
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        self.device = next(model.parameters()).device
        self.global_steps = self.micro_steps = 0

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The model's; with true values, whose optimizer needs single precision, by autocast."""
        half = self._half if self.device.type == "cpu" else None
        with torch.autocast("cpu", dtype=half or torch.bfloat16, enabled=half is not None):
            return self.module(*inputs, **options)

    def __getattr__(self, name: str) -> Any:
        """What the engine does not have, the model may."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":
                raise
        return getattr(self.module, name) if hasattr(self.module, name) else _lacking(name)

    def backward(self, loss: torch.Tensor, *arguments: Any, **options: Any) -> torch.Tensor:
        """Gradients of the loss, whose mean is over what is accumulated."""
        (loss / self.gradient_accumulation_steps()).backward()  # type: ignore[no-untyped-call]
        self.micro_steps += 1
        return loss

    def step(self, *arguments: Any, **options: Any) -> None:
        """Step the optimizer, after as many batches as are accumulated."""
        if not self.is_gradient_accumulation_boundary():
            return
        if clipping := self._number("gradient_clipping", 0):
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), clipping)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.lr_scheduler is not None:
            self.lr_scheduler.step()
        self.global_steps += 1

    def is_gradient_accumulation_boundary(self) -> bool:
        """Whether the optimizer steps now."""
        return self.micro_steps % self.gradient_accumulation_steps() == 0

    def gradient_accumulation_steps(self) -> int:
        """Batches whose gradients are added."""
        return max(int(self._number("gradient_accumulation_steps", 1)), 1)

    def train_micro_batch_size_per_gpu(self) -> int:
        """Samples of a batch."""
        world = dist.get_world_size() if dist.is_initialized() else 1
        whole = self.train_batch_size() // (world * self.gradient_accumulation_steps())
        return int(self._number("train_micro_batch_size_per_gpu", max(whole, 1)))

    def train_batch_size(self) -> int:
        """Samples of a step, of all processes."""
        return int(self._number("train_batch_size", 1))

    def zero_optimization_stage(self) -> int:
        """Of ZeRO."""
        return int((self._config.get("zero_optimization") or {}).get("stage", 0))

    def get_lr(self) -> list[float]:
        """Learning rates."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def save_checkpoint(
        self, save_dir: Any, tag: Any = None, client_state: Any = None, **options: Any
    ) -> bool:
        """Save the model and what the caller adds. As in DeepSpeed, the first rank writes and all wait for it."""
        if int(os.environ.get("RANK", "0")) == 0:
            folder = os.path.join(save_dir, str(tag or f"global_step{self.global_steps}"))
            os.makedirs(folder, exist_ok=True)
            saved = {"module": self.module.state_dict(), **(client_state or {})}
            torch.save(saved, os.path.join(folder, "mp_rank_00_model_states.pt"))
            with open(os.path.join(save_dir, "latest"), "w", encoding="utf-8") as latest:
                latest.write(os.path.basename(folder))
        _barrier()
        return True

    def load_checkpoint(
        self, load_dir: Any, tag: Any = None, **options: Any
    ) -> tuple[Optional[str], Any]:
        """What was saved; nothing where there is none."""
        latest = os.path.join(load_dir, "latest")
        if tag is None and os.path.isfile(latest):
            with open(latest, encoding="utf-8") as file:
                tag = file.read().strip()
        path = os.path.join(load_dir, str(tag), "mp_rank_00_model_states.pt")
        if not os.path.isfile(path):
            return None, {}
        saved = torch.load(path, map_location=self.device, weights_only=False)
        self.module.load_state_dict(saved.pop("module"))
        return path, saved

    def _number(self, name: str, default: float) -> float:
        value = self._config.get(name)
        return value if isinstance(value, (int, float)) else default


def half_of(config: dict[str, Any]) -> Optional[torch.dtype]:
    """The half precision that a configuration asks for."""
    for name, dtype in _HALF.items():
        if (config.get(name) or {}).get("enabled") is True:
            return dtype
    return None


def modules(configured: Callable[[dict[str, Any]], None]) -> dict[str, dict[str, Any]]:
    """DeepSpeed's modules, by their names, with what jobs use of them.

    Args:
        configured: Called with the configuration of each engine.
    """

    def initialize(
        args: Any = None,
        model: Any = None,
        optimizer: Any = None,
        model_parameters: Any = None,
        training_data: Any = None,
        lr_scheduler: Any = None,
        config: Any = None,
        config_params: Any = None,
        collate_fn: Any = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        read = _read(config or config_params or getattr(args, "deepspeed_config", None))
        configured(read)
        _init_distributed()
        if torch.cuda.is_available():
            model.to(device="cuda", dtype=half_of(read))
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if callable(optimizer):
            optimizer = optimizer(trained)
        optimizer = optimizer or optimizer_of(read, model_parameters or trained)
        if callable(lr_scheduler):
            lr_scheduler = lr_scheduler(optimizer)
        engine = Engine(model, optimizer, lr_scheduler, read)
        loader = training_data and torch.utils.data.DataLoader(
            training_data, engine.train_micro_batch_size_per_gpu(), collate_fn=collate_fn
        )
        return engine, optimizer, loader, lr_scheduler

    adam = {"FusedAdam": _adam, "DeepSpeedCPUAdam": _adam}
    nothing = {"Init": _nothing, "GatheredParameters": _nothing}
    return {
        "deepspeed": {
            "initialize": initialize,
            "init_distributed": _init_distributed,
            "add_config_arguments": _add_config_arguments,
            "DeepSpeedEngine": Engine,
            "__getattr__": _lacking,
        },
        "deepspeed.comm": {"__getattr__": partial(getattr, dist)},
        "deepspeed.ops.adam": {**adam, "__getattr__": _lacking},
        "deepspeed.zero": {**nothing, "__getattr__": _lacking},
    }


def _lacking(name: str) -> Any:
    # An error of attributes, so that `hasattr` answers; its message is that of what is the matter.
    raise AttributeError(f"No module named 'deepspeed', which provides {name}")


def _read(config: Any) -> dict[str, Any]:
    if isinstance(config, dict):
        return config
    with open(config, encoding="utf-8") as file:
        read: dict[str, Any] = json.load(file)
    return read


def optimizer_of(config: dict[str, Any], parameters: Any) -> Any:
    """The one of the configuration; DeepSpeed's own have the states of torch's."""
    given = config.get("optimizer") or {}
    options = {
        name: value
        for name, value in (given.get("params") or {}).items()
        if name in ("lr", "betas", "eps", "weight_decay", "momentum") and value != "auto"
    }
    kind: dict[str, Any] = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}
    return kind.get(str(given.get("type")).lower(), _adam)(list(parameters), **options)


def _adam(parameters: Any, *arguments: Any, **options: Any) -> torch.optim.Optimizer:
    """In one kernel, as DeepSpeed's."""
    known = {"lr", "betas", "eps", "weight_decay"}
    given = {name: value for name, value in options.items() if name in known}
    return torch.optim.AdamW(parameters, *arguments[:1], fused=True, **given)


def _nothing(*arguments: Any, **options: Any) -> Any:
    return nullcontext()


def _init_distributed(*arguments: Any, **options: Any) -> None:
    if "RANK" in os.environ and not dist.is_initialized():
        dist.init_process_group("nccl")


def _barrier() -> None:
    """Wait for all ranks, if there are several."""
    if dist.is_initialized():
        dist.barrier()


def _add_config_arguments(parser: ArgumentParser) -> ArgumentParser:
    group = parser.add_argument_group("DeepSpeed")
    group.add_argument("--deepspeed", action="store_true")
    group.add_argument("--deepspeed_config", default=None, type=str)
    return parser
