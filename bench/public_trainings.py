"""Trainings of public repositories, run as they are: the examples that people start from, with small offline data.

Nothing of a repository is stored: ``public_trainings.toml`` names repository, commit, file and arguments. A folder holds the repositories at these commits, one directory ``owner+name`` each. A program
runs in a copy of its repository, in the directory of its file; notebooks are run as the cells that follow one another.
What it would load from the network is replaced by ``stand_ins.py``. Repositories that are not ``held_out`` have been used to
mend searches.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common import REPOSITORY
from watch import Case

LIST = REPOSITORY / "bench" / "public_trainings.toml"
_COMMAND = re.compile(r"^(\s*)(!|%%?[a-z]).*")
"""Of a notebook, not of Python; a line of an expression may begin with % as well."""


@dataclass(frozen=True, slots=True)
class PublicTraining(Case):
    """A program of a public repository.

    Attributes:
        root: the directory of the repository.
        file: path of the program in it.
        arguments: of its command line.
    """

    root: Path = Path()
    file: str = ""
    arguments: tuple[str, ...] = ()

    def prepare(self, folder: Path) -> Path:
        """Copies the repository into a directory; returns the program."""
        copy = folder / "repository"
        shutil.copytree(self.root, copy, copy_function=os.link)
        program = (copy / self.file).with_suffix(".py")
        program.unlink(missing_ok=True)
        program.write_text(self.program, encoding="utf-8")
        return program


def public_trainings(folder: Path, path: Path = LIST) -> Iterator[PublicTraining]:
    """The trainings of the list whose repositories are in a directory."""
    for name, repository in tomllib.loads(path.read_text(encoding="utf-8")).items():
        directory, held_out = name.replace("/", "+"), repository.get("held_out", False)
        for command in repository["trainings"]:
            file, *arguments = shlex.split(command)
            program = program_text(folder / directory / file)
            yield PublicTraining(
                f"{directory}/{command}", "public" if held_out else "public/used", program,
                held_out=held_out, root=folder / directory, file=file, arguments=tuple(arguments),
            )  # fmt: skip


def program_text(path: Path) -> str:
    """The program of a file, or of the cells of a notebook."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        lines = "\n".join("".join(cell["source"]) for cell in cells).splitlines()
        text = "\n".join(_COMMAND.sub(r"\1pass", line) for line in lines)
    return text
