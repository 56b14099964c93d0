"""Which programs a call or a command line starts."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from epochzero.check.program.events import LibraryCall, Situation, argument
from epochzero.check.program.values import Constant, Items, Text, constant_of
from epochzero.check.rule import Program

_SHELL = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
_DIRECT = {
    "subprocess.run",
    "subprocess.call",
    "subprocess.check_call",
    "subprocess.check_output",
    "subprocess.Popen",
    "os.execvp",
    "os.execlp",
    "os.spawnvp",
}
_RAISES = {"subprocess.check_call", "subprocess.check_output"}
_OPERATORS = re.compile(r"[;&|<>()`$\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """A program that the job's code starts.

    Attributes:
        words: the command; empty texts for words that are not known.
        shell: whether a shell starts it.
        raises: whether the call raises when the program fails.
        at: where and when.
    """

    words: tuple[str, ...]
    shell: bool
    raises: bool
    at: Situation


def started(program: Program) -> Iterator[StartedProgram]:
    """The programs that a call starts, if they are known."""
    for call in program.calls:
        if call.name in _SHELL or call.name in _DIRECT:
            shell = call.name in _SHELL or constant_of(call.keywords.get("shell")) is True
            words = _words(call, shell)
            if words:
                raises = call.name in _RAISES or constant_of(call.keywords.get("check")) is True
                yield StartedProgram(words, shell, raises or not shell, call.at)


def words_of(line: str) -> tuple[str, ...]:
    """The words of the first command of a shell line; empty if they are not known."""
    simple = _OPERATORS.split(line.strip(), maxsplit=1)[0]
    try:
        words = shlex.split(simple)
    except ValueError:
        return ()
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    return tuple(words)


def _words(call: LibraryCall, shell: bool) -> tuple[str, ...]:
    first = argument(call, 0, "args")
    if isinstance(first, Items) and not shell:
        words = map(constant_of, first.values)
        return tuple(word if isinstance(word, str) else "" for word in words)
    if isinstance(first, Constant) and isinstance(first.value, str):
        return words_of(first.value) if shell else (first.value,)
    if shell and isinstance(first, Text) and isinstance(first.parts[0], str):
        # The last word before an unknown part may continue in it.
        return words_of(first.parts[0].rpartition(" ")[0])
    return ()
