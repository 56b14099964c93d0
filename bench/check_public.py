"""False errors of a check on command lines that public repositories document in their README files.

The commands are not stored: ``check_public.toml`` names repository, commit, file and line. A folder holds the
repositories at these commits, one directory ``owner+name`` each. Errors are judged by hand against the target, the
library's source and the repository; ``false`` lists those that are wrong. An error that is neither listed as false nor
as true fails the run, so that no error goes unjudged. Half of the repositories, drawn by their names, are held out.
"""

from __future__ import annotations

import argparse
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import REPOSITORY, rate, save

from epochzero.check import check
from epochzero.check.target import read_target
from epochzero.check.target.model import Target
from epochzero.errors import EpochZeroError

_QUOTED = re.compile(r"`((?:[A-Z_0-9]+=\S+ )*(?:python3?|torchrun|bash|sh) [^`]+)`")
_SCRIPT = re.compile(r"\.(py|sh)$")


@dataclass(frozen=True, slots=True)
class PublicCommand:
    """A documented command line: where it is written, and the directory in which it is run."""

    repository: str
    held_out: bool
    file: str
    line: int
    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path


def main() -> None:
    """Measure, print and save the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="directory with the repositories")
    parser.add_argument("target", type=Path, help="target that the errors were judged against")
    parser.add_argument(
        "--table", default="check_public", help="name of the table and of the result"
    )
    options = parser.parse_args()
    cases = _table(options.table)
    target = read_target(options.target)
    rows = [_row(one, target) for one in public_commands(options.folder, options.table)]
    judged = {*cases["true"], *cases["false"]}
    unjudged = {key for row in rows for key in row["errors"]} - judged
    numbers = {
        name: _numbers([row for row in rows if row["held_out"] is held], cases["false"])
        for name, held in (("development", False), ("held_out", True))
    }
    for name, values in numbers.items():
        print(name, values)
    if unjudged:
        raise SystemExit("not judged yet:\n" + "\n".join(sorted(unjudged)))
    looks = {"held_out_looks": cases["looks"]}
    looks |= {"first_look": cases["first_look"]} if "first_look" in cases else {}
    repositories = [{"name": name, **one} for name, one in cases["repositories"].items()]
    data = [{k: v for k, v in one.items() if k in ("name", "commit")} for one in repositories]
    save(options.table, numbers | looks, data=data, rivals={})


def public_commands(folder: Path, table: str = "check_public") -> Iterator[PublicCommand]:
    """The commands of a table, read from the repositories in a directory."""
    cases = _table(table)
    for name, one in cases["repositories"].items():
        root = folder / name.replace("/", "+")
        for file, lines in one["commands"].items():
            text = (root / file).read_text(encoding="utf-8", errors="replace").split("\n")
            for line in lines:
                words, environment = _split(_command(text, line))
                inside = _folder(root, file, words)
                yield PublicCommand(name, one["held_out"], file, line, words, environment, inside)


def _table(name: str) -> dict[str, Any]:
    path = REPOSITORY / "bench" / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _command(text: Sequence[str], line: int) -> str:
    """The command at a line, with the lines that continue it."""
    first = text[line - 1].strip()
    quoted = _QUOTED.search(first)
    found = quoted[1] if quoted else first.strip("`").lstrip("$>! ")
    while found.rstrip().endswith("\\") and line < len(text):
        found = f"{found.rstrip()[:-1]} {text[line].strip()}"
        line += 1
    return re.sub(r"\s+#\s.*$", "", found.replace("```", "")).strip()


def _split(command: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words of a command, and the variables before it."""
    words = shlex.split(command)
    environment: dict[str, str] = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    return tuple(words), environment


def _folder(root: Path, file: str, words: Sequence[str]) -> Path:
    """The repository, or the directory of the README if the script is there."""
    near = (root / file).parent
    script = next((word for word in words if _SCRIPT.search(word)), "")
    is_near = not (root / script).exists() and (near / script).exists()
    return near if script and is_near else root


def _row(one: PublicCommand, target: Target) -> dict[str, Any]:
    row = {"held_out": one.held_out, "checked": True, "errors": []}
    try:
        found = check(one.words, target, folder=one.folder, environment=one.environment)
    except EpochZeroError:
        return row | {"checked": False}
    errors = [each for each in found.findings if each.severity == "error"]
    top = f"{one.repository.replace('/', '+')}/"  # of the paths outside the directory where the command is run
    places = [f"{each.place.path.rpartition(top)[2]}:{each.place.line}" for each in errors]
    keys = [f"{one.repository} {each.rule} {at}" for each, at in zip(errors, places, strict=True)]
    return row | {"errors": keys}


def _numbers(rows: Sequence[Mapping[str, Any]], false: Sequence[str]) -> dict[str, Any]:
    wrong = [sum(key in false for key in row["errors"]) for row in rows]
    return {
        "commands": len(rows),
        "checked": sum(row["checked"] for row in rows),
        "errors": sum(len(row["errors"]) for row in rows),
        "false_errors": sum(wrong),
        "commands_with_a_false_error": sum(count > 0 for count in wrong),
        "share": rate(sum(count > 0 for count in wrong), len(rows)),
    }


if __name__ == "__main__":
    main()
