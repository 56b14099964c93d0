"""DeepSpeed rejects its configuration."""

from collections.abc import Iterator
from dataclasses import replace

from epochzero.check.program.configuration import get
from epochzero.check.program.values import Constant, Items, Value
from epochzero.check.rule import Claims, JobView, Rule, claim_at
from epochzero.check.rules.deepspeed import configurations

_BATCHES = ("train_batch_size", "train_micro_batch_size_per_gpu")
_STAGES = range(4)


def _check(view: JobView) -> Claims:
    for call, config in configurations(view.program):
        for about, message, error, fix in _refused(config):
            origin = about.origin if isinstance(about, Constant) else None
            at = replace(call.at, place=origin or call.at.place)
            yield claim_at(at, message=message, consequence=error, fix=fix)


def _refused(config: Items) -> Iterator[tuple[Value | None, str, str, str]]:
    """What DeepSpeed rejects: the value, the message, the error and the fix."""
    stage = _at(config, "zero_optimization", "stage")
    if isinstance(stage, Constant) and isinstance(stage.value, int) and stage.value not in _STAGES:
        yield (
            stage,
            f"The ZeRO stages are 0 to 3; {stage.value} is not one of them.",
            "pydantic_core.ValidationError: zero_optimization.stage",
            "Set one of the stages 0 to 3.",
        )
    half = [_at(config, name, "enabled") for name in ("fp16", "bf16")]
    if all(isinstance(value, Constant) and value.value is True for value in half):
        yield (
            half[1],
            "fp16 and bf16 are both enabled.",
            "AssertionError: bfloat16 and fp16 modes cannot be simultaneously enabled",
            "Enable one of them.",
        )
    sizes = [get(config, name) for name in _BATCHES]
    if sizes == [None, None]:
        yield (
            None,
            "The configuration sets neither train_batch_size nor train_micro_batch_size_per_gpu.",
            "AssertionError: Either train_batch_size or train_micro_batch_size_per_gpu needs to be "
            "provided",
            "Add train_micro_batch_size_per_gpu.",
        )


def _at(config: Items, *path: str) -> Value | None:
    value: Value | None = config
    for name in path:
        value = get(value, name) if isinstance(value, Items) else None
    return value


RULE = Rule(
    category="illegal_argument",
    why="The configuration is a separate file that is often composed from several examples. "
    "Common errors are two enabled half-precision formats, a ZeRO stage that does not exist, and "
    "a missing batch size. DeepSpeed reads the file only after all processes have started.",
    fix="Correct the configuration.",
    source="DeepSpeed documentation, 'DeepSpeed Configuration JSON'",
    check=_check,
    examples="""
        import deepspeed

        deepspeed.initialize(model=object(), config='ds.json')
        ==> ds.json <==
        {
        "train_batch_size": 8,
        "fp16": {"enabled": true},
        "bf16": {
        "enabled": true  # <-
        }
        }
        ---- caught if
        +$ python train.py --deepspeed_config ds.json
        +import argparse
         import deepspeed
        @@
        -deepspeed.initialize(model=object(), config='ds.json')
        +parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
        +deepspeed.initialize(args=parser.parse_args(), model=object())
        ----
        import deepspeed

        deepspeed.initialize(model=object(), config='ds.json')  # <-
        ==> ds.json <==
        {"fp16": {"enabled": true}}
        ---- ignored if
        -{"fp16": {"enabled": true}}
        +{"train_micro_batch_size_per_gpu": 4}
        ----
        import deepspeed

        deepspeed.initialize(model=object(), config='ds.json')
        ==> ds.json <==
        {"train_batch_size": 8, "zero_optimization": {"stage": 4}}  # <-
        ----
        $ python train.py --deepspeed_config=ds.json
        import argparse
        import deepspeed

        parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
        deepspeed.initialize(args=parser.parse_args(), model=object())
        ==> ds.json <==
        {"train_batch_size": 8}
    """,
)
