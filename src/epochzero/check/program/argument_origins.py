"""Source locations of a job's arguments, and which of the arguments are unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from epochzero.check.findings import SourceLocation
from epochzero.check.launch.model import COMMAND, Job
from epochzero.check.program.parsers.model import ArgumentProblem, ParsedCommand
from epochzero.check.program.values import Anything, Constant, Instance, Items, Value


def argument(job: Job, at: int) -> Value:
    """Return an argument of the program as a value; `Anything` if the job does not know its text.

    Args:
        job: the job.
        at: position in its ``argv``.
    """
    if at in job.unsure:
        return Anything(f"{job.argv[at]} depends on the run")
    return Constant(job.argv[at], _place(job, at))


def placed(job: Job, parsed: ParsedCommand) -> ParsedCommand:
    """Return a parsed command line with the source locations of its arguments.

    A value that comes from an unknown argument is unknown. If some arguments may be missing from the job's, an
    option that none of the others sets is unknown too.
    """
    flags = {
        name: {
            flag for option in parsed.spec.options for flag in option.flags if _means(flag, name)
        }
        for name in parsed.values
    }
    values = {name: _placed(job, value, flags[name]) for name, value in parsed.values.items()}
    return replace(parsed, values=values)


def written_at(job: Job, problem: ArgumentProblem) -> SourceLocation:
    """Return where the argument of a problem is written; for a missing argument, where the program is started."""
    if problem.kind != "missing":
        flags = problem.option.replace("/", " ").split()
        for text in (problem.value, *flags):
            found = list(_positions(job, text, flags)) if text else []
            if found:
                return _place(job, found[0])
    return job.at


def _place(job: Job, at: int) -> SourceLocation:
    if at < len(job.argv_at):
        return job.argv_at[at]
    return SourceLocation(COMMAND, code=" ".join(job.argv))


def _means(flag: str, name: str) -> bool:
    return flag.lstrip("-+/").replace("-", "_") == name


def _positions(job: Job, text: str, flags: Collection[str] = ()) -> Iterator[int]:
    """Yield the positions of a text in ``argv``, or only those that follow one of the flags if there are any."""
    found = [at for at, word in enumerate(job.argv) if word == text or word.endswith(f"={text}")]
    after = [
        at
        for at in found
        if job.argv[at].partition("=")[0] in flags or (at and job.argv[at - 1] in flags)
    ]
    yield from after or found


def _placed(job: Job, value: Value, flags: Collection[str]) -> Value:
    """Return a value with its source location, or `Anything`."""
    match value:
        case Constant(_, origin) if origin is not None and origin.path == COMMAND:
            # The flag may precede the value, and a value may contain spaces.
            words = origin.code.split(" ")
            texts = [" ".join(words[first:]) for first in range(len(words))]
            at = next((at for text in texts for at in _positions(job, text, flags)), None)
            if at is None:
                return value if not job.unsure else Anything("an argument that is not known")
            if at in job.unsure:
                return argument(job, at)
            return replace(value, origin=_place(job, at))
        case Items(_, values, keys):
            return replace(
                value,
                values=tuple(_placed(job, v, flags) for v in values),
                keys=tuple(_placed(job, key, flags) for key in keys),
                complete=value.complete and job.complete,
            )
        case Instance(_, arguments) if arguments:
            return replace(
                value, arguments=tuple(_placed(job, argument, flags) for argument in arguments)
            )
        case Constant() if not job.complete:
            return Anything("the job may have arguments that are not known")
    return value
