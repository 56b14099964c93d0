"""Shared by the rules about the command line: claims about the problems of parsed arguments."""

from collections.abc import Callable, Collection, Iterator, Sequence

from epochzero.check.launch.model import COMMAND
from epochzero.check.program.argument_origins import written_at
from epochzero.check.program.parsers.model import ArgumentProblem, ParsedCommand
from epochzero.check.rule import Claim, Claims, JobView, Program, SourceLocation, claim_at_start


def argument_check(*kinds: str, fix: str) -> Callable[[JobView], Claims]:
    """The check of a rule that reports all problems of these kinds; see `argument_claims`."""

    def check(view: JobView) -> Claims:
        return argument_claims(view.program, kinds, fix)

    return check


def argument_claims(program: Program, kinds: Collection[str], fix: str) -> Iterator[Claim]:
    """A claim for each certain problem of these kinds.

    Args:
        program: the program with its parsed command lines.
        kinds: kinds of `ArgumentProblem`.
        fix: advice if no similar option is known; ``{option}`` and ``{value}`` are filled in.
    """
    unsure = [program.job.argv[at] for at in sorted(program.job.unsure)]
    seen: set[tuple[str, str, SourceLocation]] = set()
    # The parser reports all missing arguments in one message.
    reported: set[str] = set()
    for parsed in program.parsed:
        for problem in parsed.problems:
            key = (problem.kind, problem.option, problem.place)
            if problem.kind not in kinds or key in seen or _may_pass(problem, unsure):
                continue
            seen.add(key)
            if problem.kind == "missing" and problem.message in reported:
                continue
            reported.add(problem.message)
            yield _claim(program, parsed, problem, fix)


def _may_pass(problem: ArgumentProblem, unsure: Sequence[str]) -> bool:
    """Whether an unknown argument may solve the problem, or is itself the problem."""
    argument_text = f"{problem.option}={problem.value}"
    return bool(unsure) and (
        problem.kind == "missing" or any(text in argument_text for text in unsure)
    )


def _claim(program: Program, parsed: ParsedCommand, problem: ArgumentProblem, fix: str) -> Claim:
    name = program.job.script.name if program.job.script else program.job.module
    ends = (
        f"{name}: error: {problem.message}" if parsed.spec.kind == "argparse" else problem.message
    )
    if not problem.fatal:
        ends = f"No error: the program continues, and {problem.message.partition(': ')[2]}."
    # If the program continues with a wrong value, the definition is at fault, not the command.
    place = written_at(program.job, problem) if problem.fatal else problem.place
    if place.path == COMMAND and problem.place.path:
        # A command line has no line to go to. The definition shows what the parser accepts; of an
        # argument without one, only the call is known that refuses it.
        is_undefined = problem.kind == "unknown" and problem.place == parsed.spec.place
        place = parsed.at if is_undefined and parsed.at.path else problem.place
    written = _meant(problem) or fix.format(option=problem.option, value=problem.value)
    return claim_at_start(
        place,
        severity="error" if problem.fatal else "warning",
        message=problem.message,
        consequence=ends,
        fix=written,
        via=(problem.place,) if problem.place.path and problem.place != place else (),
    )


def _meant(problem: ArgumentProblem) -> str:
    if not problem.near:
        return ""
    wrong = problem.option if problem.kind == "unknown" else problem.value
    return f"Write {problem.near} instead of {wrong}, if that is what you mean."
