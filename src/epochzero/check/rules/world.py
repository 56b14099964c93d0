"""Shared by the rules about processes, nodes and GPUs."""

from collections.abc import Iterator
from contextlib import suppress

from epochzero.check.launch.model import COMMAND, Job
from epochzero.check.program.events import Lookup, argument
from epochzero.check.program.values import Constant, constant_of, integer_of
from epochzero.check.rule import Program, SourceLocation, Target
from epochzero.launchers import by_name

_TAKES_A_GPU = ("torch.cuda.set_device", "deepspeed.init_distributed", "deepspeed.initialize")

TIME_OPTIONS = ("sbatch --time", "sbatch -t", "srun --time", "--time", "activeDeadlineSeconds")
"""Options with which a job requests its time."""


def said_text(job: Job, *names: str) -> str | None:
    """The value of a launcher option with one of these names; None if none is set."""
    found = next(
        (job.argument_sources[name] for name in names if name in job.argument_sources), None
    )
    return None if found is None else found.text


def said_at(job: Job, *names: str) -> SourceLocation:
    """Where one of these launcher arguments or variables is written; by default where the program is run."""
    found = next(
        (job.argument_sources[name].place for name in names if name in job.argument_sources), None
    )
    return found or (
        SourceLocation(COMMAND, code=job.command) if job.at.path == COMMAND else job.at
    )


def given(program: Program, name: str) -> Constant | None:
    """The value of an option: from the job's parser, or from the command line of a program whose parser
    is in a library; None if it is not known.
    """
    if (value := program.options.get(name)) is not None:
        return value if isinstance(value, Constant) else None
    job = program.job
    for at, text in written(job, f"--{name}", f"--{name.replace('_', '-')}"):
        place = job.argv_at[at] if at < len(job.argv_at) else SourceLocation(COMMAND)
        return Constant(_literal(text), place)
    return None


def written(job: Job, *options: str) -> Iterator[tuple[int, str]]:
    """The known values of ``--name 3`` and ``--name=3``, each with its position on the command line."""
    for at, word in enumerate(job.argv):
        flag, equals, text = word.partition("=")
        at = at if equals else at + 1
        if flag in options and at < len(job.argv) and at not in job.unsure:
            yield at, text if equals else job.argv[at]


def _literal(text: str) -> int | float | str:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def option(program: Program, *names: str) -> tuple[int, SourceLocation] | None:
    """The first of these options that is a known integer, and where its value comes from."""
    for name in names:
        value = given(program, name)
        found = integer_of(value)
        if found is not None and value is not None:
            origin = value.origin
            return found, origin if origin and origin.path else SourceLocation(COMMAND)
    return None


def visible(job: Job) -> tuple[str, ...] | None:
    """The GPUs that ``CUDA_VISIBLE_DEVICES`` names; None if it is not set or not known."""
    setting = job.environment.get("CUDA_VISIBLE_DEVICES")
    return None if setting is None else _named(setting)


def _named(setting: str) -> tuple[str, ...]:
    names = [name.strip() for name in setting.split(",")] if setting.strip() else []
    # CUDA stops at the first invalid index: "0,-1,1" shows one GPU.
    return tuple(names[: names.index("-1")] if "-1" in names else names)


def chosen(program: Program) -> tuple[tuple[str, ...] | None, Lookup] | None:
    """The GPUs that the program itself writes into ``CUDA_VISIBLE_DEVICES``, and where.

    None if it writes none; without the GPUs if they are not known, or not always the same.
    """
    stores = [
        lookup
        for lookup in program.lookups
        if lookup.name == "CUDA_VISIBLE_DEVICES" and lookup.stored
    ]
    if not stores:
        return None
    setting = constant_of(stores[0].value)
    is_known = isinstance(setting, str) and len(stores) == 1 and stores[0].at.certain
    return (_named(setting) if is_known and isinstance(setting, str) else None), stores[0]


def gpus_of_a_node(job: Job, target: Target) -> tuple[int, str] | None:
    """How many GPUs a process of the job sees on a node, and the source; None if not known."""
    counts = []
    names = visible(job)
    if names is not None:
        counts.append((len(names), "CUDA_VISIBLE_DEVICES shows"))
    if job.allocation.gpus_per_node is not None:
        counts.append((job.allocation.gpus_per_node, "the job requests"))
    if target.gpus is not None:
        counts.append((len(target.gpus), "a node of the target has"))
    return min(counts, key=lambda count: count[0]) if counts else None


def world_size(job: Job) -> int | None:
    """The total number of processes, if a launcher starts them; None if it is not known."""
    if job.allocation.nodes is not None and job.allocation.processes_per_node is not None:
        return job.allocation.nodes * job.allocation.processes_per_node
    return None


def in_hours(seconds: float) -> str:
    """A duration, as text for users."""
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"


def uses_gpus(program: Program) -> bool:
    """Whether the program certainly assigns its processes their own GPUs."""
    for call in program.calls:
        if not call.at.certain:
            continue
        if call.name in _TAKES_A_GPU:
            return True
        starts = call.name == "torch.distributed.init_process_group"
        if starts and constant_of(argument(call, 0, "backend")) == "nccl":
            return True
    return False


def is_set(name: str, job: Job) -> bool:
    """Whether the job or one of its launchers sets an environment variable, or may set it."""
    tools = filter(None, map(by_name().get, job.launchers))
    return name in job.environment or any(name.startswith(t.reserves + t.may_set) for t in tools)
