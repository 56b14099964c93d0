"""Programs of public collections of silent faults: whether the watcher names the fault, with the line, and is silent on fixed ones.

``public_faults.toml`` lists the programs that run offline on the CPU, with their faults according to the collection, and how programs
for Keras 1 and 2 are ported. A directory holds the repositories as git directories ``owner+name``; none of their content is stored.

    python bench/watch_public_faults.py --repositories DIR --records DIR [--cpu-s S]
"""

from __future__ import annotations

import argparse
import html
import io
import random
import re
import subprocess
import tarfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import watch_runs
from common import REPOSITORY, SEED, save
from public_trainings import PublicTraining
from watch_relations import has_line, is_right
from watch_runs import recorded, stored_path

from epochzero.run.watch.history import read_records
from epochzero.run.watch.verdict import conclude

LIST = REPOSITORY / "bench" / "public_faults.toml"
_ROW, _CELL, _VALUE = (
    re.compile(pattern, re.S)
    for pattern in ("<row .*?</row>", "<c [^>]*?(?:/>|>.*?</c>)", "<v>(.*?)</v>")
)


@dataclass(frozen=True, slots=True)
class PublicFault(PublicTraining):
    """A program of a collection; `root` is a git directory.

    Attributes:
        commit: commit of the repository.
        data: files that the program reads from its directory.
    """

    commit: str = ""
    data: tuple[str, ...] = ()

    def prepare(self, folder: Path) -> Path:
        """Write the program and its data into a directory; return the path of the program."""
        folder = folder / "repository"
        folder.mkdir(parents=True)
        if self.data:
            source = f"{self.commit}:{Path(self.file).parent}"
            archive = _git(self.root, "archive", source, "--", *self.data)
            with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                files.extractall(folder, filter="data")
        program = folder / "train.py"
        program.write_text(self.program, encoding="utf-8")
        return program


def main() -> None:
    """Runs, judges, prints, and stores the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cpu-s", type=int, default=watch_runs.CPU_S, help="of each training")
    options = parser.parse_args()
    watch_runs.CPU_S = options.cpu_s
    # Forked processes inherit these random states, because few of the programs set a seed.
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(SEED % 2**32)
    counts: dict[str, Counter[str]] = {}
    for case, found in recorded(programs(options.repositories), options.records, options.jobs):
        count = counts.setdefault(case.part, Counter())
        if found is None:
            count["not_run"] += 1
            continue
        watched = conclude(read_records(stored_path(case, options.records)))
        root, suspect = watched.root, watched.suspect
        print(case.name, case.truth.get("fault"))
        print(*(one and (one.word, one.place, one.text) for one in (root, suspect)))
        if not case.truth:
            count.update(fixed=1, false_roots=root is not None)
            continue
        named = is_right(case, root)
        line = named and root is not None and has_line(case, root)
        count.update(faults=1, named=named, line=line, wrong=root is not None and not named)
        count.update(suspected=root is None and is_right(case, suspect))
    print(counts)
    data = [{"name": LIST.name, "cpu_s": options.cpu_s}]
    save("watch_public_faults", {part: dict(count) for part, count in counts.items()}, data=data)


def programs(folder: Path) -> Iterator[PublicFault]:
    """The programs of the list."""
    collections = tomllib.loads(LIST.read_text(encoding="utf-8"))
    port = collections.pop("port")
    for name, collection in collections.items():
        for number, about in enumerate(collection["programs"]):
            root = folder / about.get("repository", name).replace("/", "+")
            commit = about.get("commit", collection["commit"])
            file = about.get("file") or collection["table"]
            if "folder" in collection:
                file = f"{collection['folder']}/{file}"
            part = name.partition("/")[2] + ("_later" if about.get("later") else "")
            data = _git(root, "show", f"{commit}:{file}")
            text = data.decode() if "file" in about else _of_table(data, about)
            yield PublicFault(
                f"{name}/{number}", part, _ported(text, port, about.get("edits", ())),
                {} if about.get("fixed") else about, root=root, file=file, commit=commit,
                arguments=tuple(about.get("arguments", ())), data=tuple(about.get("data", ())),
            )  # fmt: skip


def _ported(text: str, port: Sequence[Sequence[str]], edits: Sequence[Sequence[str]]) -> str:
    text = text.replace("\r", "")
    if "keras" in text:
        for pattern, new in port:
            text = re.sub(pattern, new, text)
    for old, new in edits:
        text = text.replace(old, new)
    return text


def _git(repository: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _of_table(data: bytes, about: dict[str, Any]) -> str:
    """The program of a post: the longest cell of its row in a workbook."""
    found = []
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        shared = [
            html.unescape(re.sub("<[^>]+>", "", text))
            for text in re.findall("<si>.*?</si>", book.read("xl/sharedStrings.xml").decode(), re.S)
        ]
        for name in sorted(n for n in book.namelist() if n.startswith("xl/worksheets/sheet")):
            for row in _ROW.findall(book.read(name).decode()):
                cells = [c for c in _CELL.findall(row) if 't="s"' in c]
                values = [shared[int(v.group(1))] for c in cells if (v := _VALUE.search(c))]
                if about["post"] in values:
                    found.append(max(values, key=len))
    return found[about.get("number", 0)]


if __name__ == "__main__":
    main()
