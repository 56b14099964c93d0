"""Shared by the rules about DeepSpeed: the configurations that it starts with."""

from collections.abc import Iterator

from epochzero.check.program.configuration import Unreadable, load
from epochzero.check.program.events import LibraryCall
from epochzero.check.program.values import Constant, Items, Value
from epochzero.check.rule import Program
from epochzero.check.rules.world import written

_OPTION = "--deepspeed_config"


def configurations(program: Program) -> Iterator[tuple[LibraryCall, Items]]:
    """Each call of ``deepspeed.initialize`` with its configuration, if that is readable."""
    for call in program.calls:
        if call.name == "deepspeed.initialize" and call.complete:
            given = call.keywords.get("config", call.keywords.get("config_params"))
            config = _read(
                program,
                given
                if given is not None
                else next((Constant(text) for _, text in written(program.job, _OPTION)), None),
            )
            if isinstance(config, Items) and config.kind == "dict":
                yield call, config


def _read(program: Program, value: Value | None) -> Value | None:
    """The configuration: a dictionary, or the file of that name in the job directory."""
    if isinstance(value, Constant) and isinstance(value.value, str):
        loaded = load(program.job.folder / value.value, "json", value.value)
        return None if isinstance(loaded, Unreadable) else loaded
    return value
