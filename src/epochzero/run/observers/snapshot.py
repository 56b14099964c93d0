"""What a job ran in: its Python and packages, GPUs and driver, variables, the state of its repository.

Taken once, in parallel to the job. What cannot be found out stays empty. Secrets are hidden.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.errors import InputError
from epochzero.run.process.usage import ProcessTree, environment_of, is_python
from epochzero.run.process.watcher import Watcher, load
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import JobSnapshot, Record

if TYPE_CHECKING:
    from epochzero.check.target import PythonInstallation
    from epochzero.code.git import Git


MOST_CHANGES = 1 << 20
_MOST_VARIABLE = 10_000
_LONGEST_LINE = 1000
_SETTLED_S = 0.2
"""A job that ends sooner is not kept waiting for a snapshot."""
_PATIENCE_S = 10.0
"""A job that has started no Python by then is taken to have none."""


class SnapshotWatcher(Watcher):
    """A watcher that leaves one `JobSnapshot`: as soon as the job's Python runs."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        """Nothing is read yet."""
        self._command = command
        self._folder = folder
        self._environment = environment
        self._taken = False

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """A job that ends at once needs no snapshot."""
        self._clock = clock
        self._tree = ProcessTree(pid)
        return ()

    def tick(self) -> Iterable[Record]:
        """The snapshot, when it is due."""
        if self._taken:
            return ()
        program = running_python(self._tree)
        if program is None and self._clock.now()[1] < _PATIENCE_S:
            return ()
        return self._take(program)

    def ended(self) -> Iterable[Record]:
        """The snapshot of a short job."""
        return () if self._taken or self._clock.now()[1] < _SETTLED_S else self._take(None)

    def _take(self, program: Path | None) -> Iterable[Record]:
        self._taken = True
        program = program or python_of(self._command, self._environment)
        return (take(self._clock, self._folder, self._environment, program),)


def take(
    clock: Clock, folder: Path, environment: Mapping[str, str], program: Path | None
) -> JobSnapshot:
    """The snapshot of a job."""
    # Loaded here because a job that ends at once needs no snapshot.
    from epochzero.check.target import read_interpreter
    from epochzero.check.target.system import gpus
    from epochzero.redact import redact

    time, elapsed = clock.now()
    interpreter = None
    if program is not None:
        try:
            interpreter = read_interpreter(program, home=environment.get("HOME", ""))
        except InputError:
            interpreter = None
    found = gpus(environment)
    repository = _Repository(folder)
    return JobSnapshot(
        time,
        elapsed,
        python=".".join(map(str, (interpreter and interpreter.version) or ())),
        system=_system(),
        packages=_packages(interpreter, folder, environment) if interpreter is not None else {},
        driver=found.driver,
        cuda=found.cuda,
        gpus=tuple(gpu.model for gpu in found.gpus or ()),
        variables=variables(environment),
        commit=repository.commit,
        branch=repository.branch,
        changes=redact(repository.changes()),
    )


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a job; a secret, by its name or by what it looks like, is hidden."""
    from epochzero.check.target.system import without_secrets
    from epochzero.redact import HIDDEN, redact

    return {
        name: redact(value[:_MOST_VARIABLE]) if value or not environment[name] else HIDDEN
        for name, value in without_secrets(environment).items()
    }


def repository_of(folder: Path) -> tuple[str, str]:
    """Commit of the repository that a folder lies in, and what differs from it; empty for none."""
    load("epochzero.code")
    repository = _Repository(folder)
    return repository.commit, repository.changes()


def running_python(tree: ProcessTree) -> Path | None:
    """The first Python that runs in a tree, as it was called: by that it knows its environment."""
    for process in sorted(tree.read(), key=lambda process: (process.started, process.pid)):
        if is_python(process.pid) and (program := _called(process.pid)) is not None:
            return program
    return None


def python_of(command: Sequence[str], environment: Mapping[str, str]) -> Path | None:
    """The Python that a command runs: itself, or the one that its script names; None for another."""
    program = shutil.which(command[0], path=environment.get("PATH", os.defpath))
    if program is None or _is_python(program):
        return Path(os.path.abspath(program)) if program else None
    try:
        with open(program, "rb") as file:
            first = file.readline(1000).decode("utf-8", "replace")
    except OSError:
        return None
    words = [*first[2:].split(), ""] if first.startswith("#!") else [""]
    named = words[1] if words[0].endswith("/env") else words[0]
    found = shutil.which(named, path=environment.get("PATH", os.defpath)) if named else None
    return Path(found) if found and _is_python(found) else None


def _is_python(program: str) -> bool:
    return os.path.basename(program).startswith(("python", "pypy"))


def _called(pid: int) -> Path | None:
    """The path by which a process was started."""
    try:
        name = Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode()
        if "/" in name:
            return Path(os.readlink(f"/proc/{pid}/cwd"), name)
    except (OSError, ValueError):
        return None
    found = shutil.which(name, path=environment_of(pid).get("PATH", os.defpath))
    return Path(found) if found else None


def _packages(
    interpreter: PythonInstallation, folder: Path, environment: Mapping[str, str]
) -> dict[str, str]:
    from epochzero.check.target.packages import installed

    entries = environment.get("PYTHONPATH", "").split(os.pathsep)
    first = [str(folder / entry) for entry in entries if entry]
    found = installed([*first, *interpreter.folders])
    return {name: distribution.version for name, distribution in sorted(found.items())}


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, {platform.system()} {platform.release()}"


class _Repository:
    """The repository in which a job runs; all is empty where there is none."""

    def __init__(self, folder: Path) -> None:
        from epochzero.code.git import Git

        self._git: Git = Git(folder)
        self.commit = self._said("rev-parse", "--verify", "HEAD")
        self.branch = self._said("symbolic-ref", "--quiet", "--short", "HEAD")

    def changes(self) -> str:
        """What differs from the commit, cut to a bound."""
        if not self.commit:
            return ""
        try:
            # The first piece is as large as the bound; git ends when no more is read.
            chunks = self._git.stream("diff", "--no-ext-diff", "--no-textconv", "HEAD")
            text = next(chunks, b"")[:MOST_CHANGES].decode("utf-8", "replace")
        except InputError:
            return ""
        # The last line may be cut within a secret. One that is very long is data, and costly to search.
        return "".join(
            line if len(line) <= _LONGEST_LINE else f"{line[0]}[{len(line)} characters]\n"
            for line in text[: text.rfind("\n") + 1].splitlines(keepends=True)
        )

    def _said(self, *arguments: str) -> str:
        try:
            output, _ = self._git.attempt(*arguments)
        except InputError:
            return ""
        return (output or b"").decode("utf-8", "replace").strip()
