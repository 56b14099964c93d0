"""Mines training pairs for the reader: a change's message, and the functions that it changed.

Each fix has one vote: its message with at most ``--functions`` functions as they were before it.
Merges, reverts, releases, formatting, bots, tests and vendored code are left out, and so are changes
of more than four files, whose message says little about each. The first paragraph of a docstring is
a second kind of pair: it describes its function in prose.

Projects of the evaluation data (Denchmark, BuGL) are refused by name, their file versions by blob
(``--evaluated`` names their clones), and reserved projects by name. What was mined for a repository
is kept in ``--work``, one file each, so that an interrupted run resumes. Texts of other projects
stay there: nothing of them goes into this repository.

    python bench/reader_data.py --clones DIR --evaluated DIR --work DIR
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import data_file

from epochzero.code import is_test

COMMITS = 5000
"""The newest changes of Python files that are read from each repository."""
PAIRS = 3000
"""Fixes taken of one repository at most, so that no project dominates."""
DOCSTRINGS = 1200
LONGEST_UNIT, LONGEST_MESSAGE = 1600, 900
"""Characters; the reader sees a few hundred tokens."""

_RESERVED = """
tensorflow/addons rlworkgroup/garage tensorpack/tensorpack pytorch/ignite deepset-ai/haystack
ludwig-ai/ludwig deepset-ai/FARM dmlc/dgl OpenMined/PySyft ultralytics/yolov5 awslabs/autogluon
catalyst-team/catalyst thu-ml/tianshou DLR-RM/stable-baselines3 cornellius-gp/gpytorch flairNLP/flair
hill-a/stable-baselines pytorch/examples
astropy/astropy django/django matplotlib/matplotlib mwaskom/seaborn pallets/flask psf/requests
pydata/xarray pylint-dev/pylint pytest-dev/pytest scikit-learn/scikit-learn sphinx-doc/sphinx
sympy/sympy
"""
"""Projects on which others evaluate, and one whose code a reserved one continues."""

_NOISE = re.compile(
    r"^(?:merge\b|revert\b|bump\b|release\b|prepare (?:for )?release|version\b|v?\d+\.\d+|"
    r"\[?pre-commit|update (?:the )?(?:changelog|version|readme|copyright|docs?|submodule)|"
    r"(?:fix(?:ed)? |apply |run )?(?:black|isort|flake8|lint|linter|linting|yapf|pylint|format|"
    r"formatting|style|typos?|pep-?8|whitespaces?)\b|add copyright|changelog|docs?:|style:|chore|"
    r"ci:|internal change|automated|initial commit|wip\b|.*\bcherry.?pick)",
    re.IGNORECASE,
)
_BOT = re.compile(r"\[bot\]|dependabot|pre-commit-ci|renovate")
_TRAILER = re.compile(
    r"^\s*(?:(?:signed-off|co-authored|reviewed|acked|tested|approved)-by:|piperorigin-revid|"
    r"change-id|differential rev|pull.?request|reviewed by|approved by|summary:\s*$|cc:? @|"
    r"- \[[ x]\]|github-|fbshipit|originally|squashed|\* (?:fix )?(?:style|lint|typo|merge|update)).*$",
    re.IGNORECASE | re.MULTILINE,
)
_LINK = re.compile(r"https?://\S+|\(#\d+\)|<!--.*?-->|#\d+\b", re.DOTALL)
_VENDORED = re.compile(
    r"(?:^|/)(?:third_?party|vendor(?:ed)?|_vendor|extern(?:al)?s?|yolov5|site-packages|"
    r"build|dist|docs?|node_modules)/"
)
_DEFINED = re.compile(r"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)", re.MULTILINE)
_DOCSTRING = re.compile(r'^[ \t]*[rRuU]?("""|\'\'\')(.*?)\1', re.DOTALL | re.MULTILINE)
_UNSEEN = re.compile(r"[\s\"',()\\]+")
"""What a formatter may change."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A function, method, or the code of a module outside of them (an empty name)."""

    name: str
    text: str


def main() -> None:
    """Mines every clone that is not mined yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--clones", type=Path, required=True, help="directory of clones, owner+name"
    )
    parser.add_argument("--evaluated", type=Path, help="directory of clones to exclude by blob")
    parser.add_argument("--work", type=Path, required=True, help="where mined pairs are stored")
    parser.add_argument("--functions", type=int, default=3, help="functions of one fix at most")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    refused = _refused()
    evaluated: set[str] | None = None
    for clone in sorted(options.clones.iterdir()):
        target = options.work / f"{clone.name}.jsonl.gz"
        if target.exists():
            continue
        if clone.name.lower() in refused:
            print(f"{clone.name}: refused, it is evaluated on", file=sys.stderr)
            continue
        if evaluated is None:
            evaluated = _blobs(options.evaluated) if options.evaluated else set()
        try:
            rows = list(_mined(_git_directory(clone), evaluated, options.functions))
        except subprocess.CalledProcessError as error:
            print(f"{clone.name}: {error.stderr.decode()}", file=sys.stderr)
            continue
        partial = target.with_suffix(".partial")
        with gzip.open(partial, "wt", encoding="utf-8", compresslevel=4) as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        partial.rename(target)
        print(f"{clone.name}: {len(rows)} pairs", file=sys.stderr, flush=True)


def _refused() -> set[str]:
    names = {name.replace("/", "+").lower() for name in _RESERVED.split()}
    for data in ("denchmark/reports.jsonl.gz", "bugl/reports.jsonl.gz"):
        names |= {record["project"].lower() for record in data_file(data).records}
    return names


def _git_directory(clone: Path) -> Path:
    for path in (clone / "repo" / ".git", clone / "repo", clone / ".git"):
        if (path / "objects").is_dir():
            return path
    return clone


def _git(directory: Path, *arguments: str, text: bytes = b"") -> bytes:
    command = ("git", "-c", "safe.directory=*", "--git-dir", str(directory), *arguments)
    return subprocess.run(command, input=text, capture_output=True, check=True).stdout


def _blobs(clones: Path) -> set[str]:
    """The objects of all clones in a directory."""
    listed = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
    return {
        line
        for clone in clones.iterdir()
        for line in _git(_git_directory(clone), *listed).decode().split()
    }


# Commits


def _mined(directory: Path, evaluated: set[str], most: int) -> Iterator[Mapping[str, Any]]:
    """The pairs of one repository: fixes, then docstrings."""
    chosen = list(_commits(directory, evaluated))[:PAIRS]
    needed = dict.fromkeys(
        blob for _, files in chosen for _, old, new in files for blob in (old, new)
    )
    pieces = _Pieces(directory, list(needed))
    seen: set[bytes] = set()
    described: dict[str, Mapping[str, Any]] = {}
    for message, files in chosen:
        changed = []
        for path, old, new in files:
            before, after = pieces[old], pieces[new]
            for name, piece in before.items():
                if name not in after or _seen(after[name]) != _seen(piece):
                    changed.append((path, name, piece))
                place = f"{path} {name}"
                wanted = name and len(described) < DOCSTRINGS and place not in described
                if wanted and (found := _described(piece)):
                    described[place] = {"q": found[0], "u": [[path, name, found[1]]]}
        functions = [each for each in changed if each[1]]
        key = hashlib.sha1(message.encode()).digest()
        if key in seen or not 1 <= len(functions or changed) <= 6:
            continue
        seen.add(key)
        kept = (functions or changed)[:most]
        yield {"q": message, "u": [[path, name, text[:LONGEST_UNIT]] for path, name, text in kept]}
    yield from described.values()


_File = tuple[str, str, str]


def _commits(directory: Path, evaluated: set[str]) -> Iterator[tuple[str, Sequence[_File]]]:
    """Messages, and path, old and new blob of each file changed."""
    listed = _git(
        directory, "log", "--no-merges", "--raw", "--no-abbrev", "--no-renames",
        f"--max-count={COMMITS}", "--format=%x01%an%x02%s%x02%b%x03", "HEAD", "--", "*.py",
    ).decode("utf-8", "replace")  # fmt: skip
    for entry in listed.split("\x01")[1:]:
        head, _, raw = entry.partition("\x03")
        author, subject, body = head.split("\x02", 2)
        message = _message(subject, body)
        if not message or _BOT.search(author):
            continue
        files, others = [], 0
        for line in raw.splitlines():
            if not line.startswith(":"):
                continue
            meta, _, path = line.partition("\t")
            _, _, old, new, status = meta.split()
            if is_test(path) or _VENDORED.search(path):
                continue
            if status == "M" and old not in evaluated and new not in evaluated:
                files.append((path, old, new))
            else:
                others += 1
        if 1 <= len(files) <= 4 and others <= 2:
            yield message, files


def _message(subject: str, body: str) -> str:
    """What a message says of the change; empty where that is nothing."""
    title = _LINK.sub("", subject).strip()
    if len(title.split()) < 3 or _NOISE.match(title):
        return ""
    text = _LINK.sub("", _TRAILER.sub("", body)).strip()
    return f"{title}\n{text}"[:LONGEST_MESSAGE].strip()


# Pieces of files


class _Pieces(dict[str, Mapping[str, str]]):
    """The pieces of blobs, by name; read in the order in which they are asked for."""

    def __init__(self, directory: Path, blobs: Sequence[str]) -> None:
        super().__init__()
        content = _git(directory, "cat-file", "--batch", text="\n".join(blobs).encode())
        place = 0
        for blob in blobs:
            end = content.index(b"\n", place)
            if content[place:end].endswith(b" missing"):  # a partial clone lacks large files
                self[blob] = {}
                place = end + 1
                continue
            size = int(content[place:end].split()[2])
            data = content[end + 1 : end + 1 + size]
            place = end + 2 + size
            text = data.decode("utf-8", "replace") if size < 400_000 else ""
            self[blob] = {piece.name: piece.text for piece in pieces_of(text)}


def pieces_of(text: str) -> Iterator[Piece]:
    """The functions and methods of Python code, and the code outside of them.

    Found by their indentation, so that code of any version of Python can be read.
    """
    around: list[tuple[int, str]] = []  # classes still open: their end, their name
    outside: list[str] = []
    done = 0
    for match in _DEFINED.finditer(text):
        begin = match.start()
        if begin < done:
            continue  # inside a function
        while around and around[-1][0] <= begin:
            around.pop()
        end = _end(text, match.end(), len(match[1].expandtabs()))
        name = ".".join([*(name for _, name in around), match[3]])
        if match[2] == "class":
            around.append((end, name.rpartition(".")[2]))
        else:
            outside.append(text[done:begin])
            done = end
            yield Piece(name, text[begin:end])
    outside.append(text[done:])
    yield Piece("", "".join(outside))


_ENDS: dict[int, re.Pattern[str]] = {}


def _end(text: str, begin: int, indent: int) -> int:
    """Where the block of a definition ends: before the next line that is indented no deeper."""
    if indent not in _ENDS:
        _ENDS[indent] = re.compile(rf"\n(?=[ \t]{{0,{indent}}}[^\s#)\]}}\"'])")
    found = _ENDS[indent].search(text, begin)
    return found.start() + 1 if found else len(text)


def _seen(text: str) -> str:
    return _UNSEEN.sub("", text)


def _described(text: str) -> tuple[str, str] | None:
    """The first paragraph of a function's docstring, and the function without the docstring."""
    found = _DOCSTRING.search(text, 0, 800)
    if not found:
        return None
    paragraph = re.split(r"\n\s*\n|\n\s*(?:Args|Parameters|Returns|:param)", found[2].strip())[0]
    rest = text[: found.start()] + text[found.end() :]
    if len(paragraph.split()) < 5 or len(rest) < 120:
        return None
    return " ".join(paragraph.split())[:300], rest[:LONGEST_UNIT]


if __name__ == "__main__":
    main()
