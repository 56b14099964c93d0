"""Static analysers that check is compared with, run as they are meant to be, over a job's folder.

They take no command line and no platform. To their advantage: deptry is given the platform's
packages as the project's requirements, the type checker the platform's Python version and the
libraries of the Python that runs the benchmark, and only messages that claim an error, not those
about style, count as false errors.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochzero.check.target.model import Target

__all__ = ["ANALYSERS", "Analyser", "Message", "installed"]

_MESSAGE = re.compile(
    r"(?:ERROR |WARN )?(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?P<text>.*)"
    r"|::(?P<level>\w+) file=(?P<path2>[^,]+),line=(?P<line2>\d+),(?P<text2>.*)"
)
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True, slots=True)
class Message:
    """What an analyser says of a line; `error` when it claims that something is wrong there."""

    path: str
    line: int
    text: str
    error: bool


@dataclass(frozen=True, slots=True)
class Analyser:
    """A tool of the rivals' environment.

    Attributes:
        name: as it stands in result files.
        distribution: that brings it.
        program: in the environment's ``bin``.
        arguments: for a folder (the working folder of the tool) and a platform.
        error: whether a message claims an error, by its text.
    """

    name: str
    distribution: str
    program: str
    arguments: Callable[[Path, Target], Sequence[str]]
    error: Callable[[str], bool]

    def messages(self, environment: Path, folder: Path, target: Target) -> list[Message]:
        """What it says of the job in a folder."""
        command = [str(environment / "bin" / self.program), *self.arguments(folder, target)]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
        )
        return list(self._parsed(done.stdout + done.stderr, folder))

    def _parsed(self, output: str, folder: Path) -> list[Message]:
        found = []
        for line in _COLOUR.sub("", output).splitlines():
            if match := _MESSAGE.match(line.strip()):
                path = Path(match["path"] or match["path2"])
                name = path.relative_to(folder) if path.is_relative_to(folder) else path
                number = int(match["line"] or match["line2"])
                text = match["text"] or f"{match['level']} {match['text2']}"
                found.append(Message(name.as_posix(), number, text, self.error(text)))
        return found


def installed(environment: Path | None, analyser: Analyser) -> str:
    """Version of the analyser in the rivals' environment; empty when it is not there."""
    if environment is None or not (environment / "bin" / analyser.program).exists():
        return ""
    code = f"import importlib.metadata as m; print(m.version({analyser.distribution!r}))"
    command = [str(environment / "bin" / "python"), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _deptry(folder: Path, target: Target) -> Sequence[str]:
    known = target.distributions or {}
    requirements = folder / "requirements-of-platform.txt"
    requirements.write_text("".join(f"{name}\n" for name in known), encoding="utf-8")
    command = [".", "--no-ansi", "--requirements-files", requirements.name]
    modules = [f"{name}={'|'.join(each.modules)}" for name, each in known.items() if each.modules]
    return [*command, "--package-module-name-map", ",".join(modules)] if modules else command


def _pyrefly(folder: Path, target: Target) -> Sequence[str]:
    (folder / "pyrefly.toml").touch()  # its own defaults, whatever lies in the folders above
    version = ".".join(map(str, target.python or sys.version_info[:3]))
    python = ["--python-version", version, "--python-interpreter-path", sys.executable]
    return ["check", *python, "--output-format", "min-text", *_sources(folder)]


def _sources(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))


_STYLE = re.compile(
    r"imported but unused|assigned to but never used|redefinition of unused|unable to detect"
    r"|may be undefined|is missing placeholders|import \* only allowed"
)

ANALYSERS = (
    Analyser(
        "pyflakes",
        "pyflakes",
        "pyflakes",
        lambda folder, _: _sources(folder),
        lambda text: not _STYLE.search(text),
    ),
    Analyser("torchfix", "torchfix", "torchfix", lambda *_: ["."], lambda _: True),
    Analyser("deptry", "deptry", "deptry", _deptry, lambda text: "DEP001" in text),
    Analyser(
        "torch_preflight",
        "torch-preflight",
        "torch-preflight",
        lambda *_: ["check", "--format", "github", "--jobs", "1", "."],
        lambda text: text.startswith("error"),
    ),
    Analyser(
        "pyrefly",
        "pyrefly",
        "pyrefly",
        _pyrefly,
        lambda text: "missing-import" not in text and "missing-source" not in text,
    ),
)
