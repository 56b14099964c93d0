"""Shared by the rules about DeepSpeed: the configurations that it starts with."""

from collections.abc import Iterator

from epochzero.check.program.configuration import Unreadable, load
from epochzero.check.program.events import LibraryCall
from epochzero.check.program.values import Constant, Items, Value
from epochzero.check.rule import Program

_OPTION = "--deepspeed_config"


def configurations(program: Program) -> Iterator[tuple[LibraryCall, Items]]:
    """Each call of ``deepspeed.initialize`` with its configuration, if that is readable."""
    for call in program.calls:
        if call.name == "deepspeed.initialize" and call.complete:
            given = call.keywords.get("config", call.keywords.get("config_params"))
            config = _read(program, given if given is not None else _of_command(program))
            if isinstance(config, Items) and config.kind == "dict":
                yield call, config


def _of_command(program: Program) -> Value | None:
    """The file that the command line names; DeepSpeed's own arguments read it."""
    for at, word in enumerate(program.job.argv):
        name, equals, value = word.partition("=")
        at = at if equals else at + 1
        if name == _OPTION and at < len(program.job.argv) and at not in program.job.unsure:
            return Constant(value if equals else program.job.argv[at])
    return None


def _read(program: Program, value: Value | None) -> Value | None:
    """The configuration: a dictionary, or the file of that name in the job directory."""
    if isinstance(value, Constant) and isinstance(value.value, str):
        loaded = load(program.job.folder / value.value, "json", value.value)
        return None if isinstance(loaded, Unreadable) else loaded
    return value
