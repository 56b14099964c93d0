"""The git executable, so that nothing in an untrusted repository can run or write.

A repository's own configuration can name programs (a file-system monitor, hooks, filters, external
diffs, a signature checker, transports), and its objects may be fetched lazily from wherever it
says. Only commands that read are called; what of the configuration could start a program is
overridden, the user's and the machine's configuration are left out, and every transport is closed.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, cast

from epochzero.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


CHUNK_BYTES = 1 << 20
_NOWHERE = os.devnull

# What a repository's configuration may not decide; the command line has the last word.
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": _NOWHERE,
    "core.untrackedCache": "false",
    "core.attributesFile": _NOWHERE,
    "core.excludesFile": _NOWHERE,
    "core.packedGitLimit": "64m",  # what is mapped counts as memory of the child
    "core.packedGitWindowSize": "4m",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "core.alternateRefsCommand": "false",
    "credential.helper": "",
    "diff.orderFile": _NOWHERE,
    "diff.relative": "false",
    "gc.auto": "0",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showSignature": "false",
    "log.showRoot": "true",
    "log.follow": "false",
    "log.mailmap": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.directory": "*",
    "submodule.recurse": "false",
}

_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ASKPASS": "false",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": _NOWHERE,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": _NOWHERE,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": _NOWHERE,
    "LC_ALL": "C",
    "SSH_ASKPASS": "false",
    "XDG_CONFIG_HOME": _NOWHERE,
}


def _environment() -> dict[str, str]:
    """The child's environment: the user's, without what steers git."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | _ENVIRONMENT


@cache
def _settings() -> tuple[str, ...]:
    return tuple(part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}"))


class Git:
    """Calls git in one repository.

    Args:
        folder: where git runs; it looks for the repository from here unless ``git_dir`` is given.
        git_dir: the repository's own folder.
        work_tree: the top of the work tree, where there is one.
    """

    def __init__(
        self, folder: Path, git_dir: Path | None = None, work_tree: Path | None = None
    ) -> None:
        self.folder = folder
        self._command = ["git", "--no-pager", *_settings()]
        if git_dir is not None:
            self._command.append(f"--git-dir={git_dir}")
        if work_tree is not None:
            self._command.append(f"--work-tree={work_tree}")

    def start(self, arguments: Sequence[str], complaints: IO[bytes]) -> subprocess.Popen[bytes]:
        """A child with pipes for input and output, and a file for what it complains of.

        Raises:
            InputError: git is not installed or cannot be started.
        """
        try:
            return subprocess.Popen(
                [*self._command, *arguments],
                cwd=self.folder,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )
        except FileNotFoundError as error:
            if not self.folder.is_dir():
                raise InputError(f"{self.folder}: no such directory") from error
            raise InputError(
                "git is not installed or not on PATH; it is required to read repositories"
            ) from error
        except (OSError, ValueError) as error:
            raise InputError(f"{self.folder}: git cannot be started: {error}") from error

    def attempt(self, *arguments: str) -> tuple[bytes | None, str]:
        """Runs git to its end: the output, None when it failed, and the complaint."""
        with TemporaryFile() as complaints:
            with self.start(arguments, complaints) as child:
                output, _ = child.communicate()
            return None if child.returncode else output, complaint(complaints)

    def run(self, *arguments: str) -> bytes:
        """The output of a command.

        Raises:
            InputError: git failed; the message holds git's own.
        """
        output, error_text = self.attempt(*arguments)
        if output is None:
            raise self.failure(arguments[0], error_text)
        return output

    def stream(self, *arguments: str) -> Iterator[bytes]:
        """The output of a command, in chunks, while it runs.

        Raises:
            InputError: git failed; the message holds git's own.
        """
        with TemporaryFile() as complaints:
            with self.start(arguments, complaints) as child:
                output = cast("IO[bytes]", child.stdout)
                try:
                    while chunk := output.read(CHUNK_BYTES):
                        yield chunk
                except GeneratorExit:
                    child.kill()
                    raise
            if child.returncode:
                raise self.failure(arguments[0], complaint(complaints))

    def failure(self, command: str, error_text: str) -> InputError:
        """The error for a command that failed, with advice where an object is missing."""
        found = _REASON.search(error_text)
        reason = found[1] if found else error_text or "it exited without a message"
        message = f"{self.folder}: git {command} failed: {reason}"
        if _MISSING.search(error_text):
            return MissingObjectError(f"{message}; {MISSING_ADVICE}")
        return InputError(message)


class MissingObjectError(InputError):
    """An object that the repository refers to is not in this clone."""


MISSING_ADVICE = (
    "this object is missing from the clone, which is shallow, partial or damaged; complete the clone "
    "with `git fetch --unshallow` or, if it was cloned with --filter, with `git fetch --refetch "
    "--no-filter`"
)
_MISSING = re.compile(
    r"could not fetch|missing (?:blob|tree|commit|object)|unable to read (?:tree|sha1|[0-9a-f]{40})"
    r"|bad object|bad tree object|not a tree object|promisor|could not get object info"
)
_REASON = re.compile(r"^(?:fatal|error): *(.+)", re.MULTILINE)


def complaint(complaints: IO[bytes]) -> str:
    """What a child has written to its file of complaints."""
    complaints.seek(0)
    return complaints.read().decode("utf-8", "replace").strip()
