"""Programs of public collections of silent faults: whether the watcher names the fault, with the line, and is silent on fixed ones.

``public_faults.toml`` lists those that run offline on the CPU, with the fault as the collection has it. A folder holds the
repositories as git directories ``owner+name``; nothing of them is stored.

    python bench/watch_public_faults.py --repositories DIR --records DIR [--cpu-s S]
"""

from __future__ import annotations

import argparse
import html
import io
import re
import subprocess
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import watch_runs
from common import REPOSITORY, save
from watch import Case
from watch_relations import has_line, is_right
from watch_runs import recorded, stored_path

from epochzero.run.watch.history import read_records
from epochzero.run.watch.verdict import conclude

LIST = REPOSITORY / "bench" / "public_faults.toml"
_ROW, _CELL, _VALUE = (
    re.compile(pattern, re.S)
    for pattern in ("<row .*?</row>", "<c [^>]*?(?:/>|>.*?</c>)", "<v>(.*?)</v>")
)


def main() -> None:
    """Runs, judges, prints, and stores the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--cpu-s", type=int, default=watch_runs.CPU_S, help="of each training")
    options = parser.parse_args()
    watch_runs.CPU_S = options.cpu_s
    counts: dict[str, Counter[str]] = {}
    for case, found in recorded(programs(options.repositories), options.records, 1):
        count = counts.setdefault(case.part, Counter())
        if found is None:
            count["not_run"] += 1
            continue
        root = conclude(read_records(stored_path(case, options.records))).root
        print(case.name, root and (root.word, root.place, root.text))
        if not case.truth:
            count.update(fixed=1, false_roots=root is not None)
            continue
        named = is_right(case, root)
        line = named and root is not None and has_line(case, root)
        count.update(faults=1, named=named, line=line, wrong=root is not None and not named)
    print(counts)
    data = [{"name": LIST.name, "cpu_s": options.cpu_s}]
    save("watch_public_faults", {part: dict(count) for part, count in counts.items()}, data=data)


def programs(folder: Path) -> Iterator[Case]:
    """The programs of the list."""
    for name, collection in tomllib.loads(LIST.read_text(encoding="utf-8")).items():
        for number, about in enumerate(collection["programs"]):
            file = about.get("file", collection.get("table"))
            data = _file(folder / name.replace("/", "+"), collection["commit"], file)
            text = data.decode() if "file" in about else _of_table(data, about)
            truth = {} if about.get("fixed") else about
            yield Case(f"{name}/{number}", name.partition("/")[2], text.replace("\r", ""), truth)


def _file(repository: Path, commit: str, path: str) -> bytes:
    command = ["git", "-C", str(repository), "show", f"{commit}:{path}"]
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
