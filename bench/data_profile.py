"""What data validation finds of made corruptions, what it says of clean data, and how long it takes.

Each corruption changes a held-out part of made data; the profile is that of the other part. Found is a
corruption when there is a finding that the clean part does not have. Clean parts of the same source,
20 seeds each, and random halves of measured data sets must give no error. The rivals infer a schema
from the same part, or take it as their reference, as their documentation has it, and are given the same
files where they read the format; that a file cannot be read counts as found. Megabytes of a
command are never below this script's own, which Linux counts in.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
import wave
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import SEED, save

from epochzero.data import Profile, profile, validate

TRAIN, TEST, CLEAN_SEEDS = 2000, 1000, 20
WORDS = ("good", "bad", "café", "movie", "film", "plot", "actor", "long", "short", "music", "scene")
Row = dict[str, Any]
Rows = list[Row]


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200, metavar="N")
    parser.add_argument("--images", type=int, default=20_000, metavar="N")
    parser.add_argument("--misses", action="store_true", help="name what was not found")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="data-profile-") as name:
        folder = Path(name)
        numbers: dict[str, Any] = {"corruptions": _corruptions(folder, misses=options.misses)}
        numbers["clean"] = _clean(folder)
        numbers["speed"] = _speed(folder, options.megabytes, options.images)
    print(json.dumps(numbers, indent=1))
    versions = {name: metadata.version(name) for name in _rivals()}
    save(
        "data_profile", numbers, data=[{"name": "made"}, {"name": "scikit-learn"}], rivals=versions
    )


# -- Data --------------------------------------------------------------------------------------


def _rows(count: int, seed: int) -> Rows:
    draw = random.Random(seed)
    labels = [
        draw.choices(("positive", "negative", "neutral"), (60, 30, 10))[0] for _ in range(count)
    ]
    return [
        {
            "id": seed * 1_000_000 + n,
            "age": min(90, draw.randint(18, 75) + (label == "negative") * 15),
            "income": None if draw.random() < 0.1 else round(draw.lognormvariate(10, 1), 2),
            "city": draw.choice(("Paris", "Rome", "Berlin")),
            "review": " ".join(draw.choices(WORDS, k=draw.randint(3, 30))),
            "day": f"2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
            "label": label,
        }
        for n, label in enumerate(labels)
    ]


def _write_csv(path: Path, rows: Rows, comma: str = ",") -> None:
    lines = [comma.join(rows[0])]
    lines += [comma.join("" if v is None else str(v) for v in row.values()) for row in rows]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="")


def _write_jsonl(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _write_parquet(path: Path, rows: Rows) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = {name: _of_one_type([row[name] for row in rows]) for name in rows[0]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def _of_one_type(values: list[Any]) -> list[Any]:
    """The values of a column, which has one type, as text or fractions where some are."""
    kinds = {type(value) for value in values} - {type(None)}
    wide = next((kind for kind in (str, float) if kind in kinds), None)
    return [value if value is None or wide is None else wide(value) for value in values]


WRITERS: Mapping[str, Callable[[Path, Rows], None]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    **({"parquet": _write_parquet} if find_spec("pyarrow") else {}),
}


# -- Corruptions -------------------------------------------------------------------------------


def _some(rows: Rows, column: str, change: Callable[[Any], Any], share: float) -> Rows:
    draw = random.Random(7)
    return [
        row | {column: change(row[column])}
        if draw.random() < share and row[column] is not None
        else row
        for row in rows
    ]


def _standardized(rows: Rows, column: str) -> Rows:
    values = [row[column] for row in rows if row[column] is not None]
    mean, deviation = float(np.mean(values)), float(np.std(values))
    return _some(rows, column, lambda number: (number - mean) / deviation, 1)


def _shuffled(rows: Rows, column: str) -> Rows:
    values = [row[column] for row in rows]
    random.Random(7).shuffle(values)
    return [row | {column: value} for row, value in zip(rows, values, strict=True)]


def _renamed(rows: Rows) -> Rows:
    return [{{"label": "Label"}.get(name, name): v for name, v in row.items()} for row in rows]


def _swapped(rows: Rows) -> Rows:
    return [row | {"city": row["label"], "label": row["city"]} for row in rows]


ROWS: Mapping[str, Callable[[Rows], Rows]] = {
    "column dropped": lambda rows: [{k: v for k, v in row.items() if k != "age"} for row in rows],
    "column renamed": _renamed,
    "column added": lambda rows: [row | {"split": "a"} for row in rows],
    "two columns swapped": _swapped,
    "text among numbers": lambda rows: _some(rows, "age", lambda _: "unknown", 0.005),
    "fractions among whole numbers": lambda rows: _some(rows, "age", lambda n: n + 0.5, 0.005),
    "one number far too large": lambda rows: [rows[0] | {"age": 9999}, *rows[1:]],
    "negative numbers": lambda rows: _some(rows, "age", lambda n: -n, 0.01),
    "another unit": lambda rows: _some(rows, "income", lambda n: n * 100_000, 1),
    "values missing": lambda rows: _some(rows, "age", lambda _: None, 0.05),
    "far more values missing": lambda rows: _some(rows, "income", lambda _: None, 0.5),
    "column empty": lambda rows: _some(rows, "review", lambda _: None, 1),
    "column constant": lambda rows: _some(rows, "city", lambda _: "Rome", 1),
    "new class": lambda rows: _some(rows, "label", lambda _: "mixed", 0.002),
    "class in other letters": lambda rows: _some(rows, "label", str.upper, 0.3),
    "class gone": lambda rows: [row for row in rows if row["label"] != "negative"],
    "other shares of classes": lambda rows: _some(rows, "label", lambda _: "neutral", 0.5),
    "another way to write dates": lambda rows: _some(rows, "day", lambda d: f"{d[8:]}.{d[5:7]}.", 0.05),
    "dates of another century": lambda rows: _some(rows, "day", lambda d: "1924" + d[4:], 0.02),
    "text far too long": lambda rows: _some(rows, "review", lambda text: text * 50, 0.002),
    "no records": lambda rows: [],
    "a tenth of the records": lambda rows: rows[: len(rows) // 20],
    "number standardized": lambda rows: _standardized(rows, "income"),
    "logarithms in place of numbers": lambda rows: _some(rows, "income", math.log, 1),
    "number constant": lambda rows: _some(rows, "income", lambda _: 21_000.0, 1),
    "number clipped at its median": lambda rows: _some(rows, "age", lambda n: min(n, 54), 1),
    "missing values filled in": lambda rows: [row | {"income": 22_000.0 if row["income"] is None else row["income"]} for row in rows],
    "labels shuffled": lambda rows: _shuffled(rows, "label"),
    "sorted by label": lambda rows: sorted(rows, key=lambda row: str(row["label"])),
    "an identity repeated": lambda rows: [rows[0] | {"id": rows[1]["id"]}, *rows[1:]],
    "records under two labels": lambda rows: [*rows, *(row | {"label": "neutral"} for row in rows[:20] if row["label"] != "neutral")],
    "mojibake": lambda rows: _some(rows, "review", lambda t: t.replace("é", "Ã©"), 0.05),
    "empty texts": lambda rows: _some(rows, "review", lambda _: "", 0.02),
    "texts of blanks": lambda rows: _some(rows, "review", lambda _: "  ", 0.02),
    "texts cut at 20 characters": lambda rows: _some(rows, "review", lambda text: text[:20], 1),
    "texts in capitals": lambda rows: _some(rows, "review", str.upper, 1),
}  # fmt: skip
"""By what was done to the rows; written in each format."""

BYTES: Mapping[str, Callable[[bytes], bytes]] = {
    "cut off in the middle": lambda data: data[: len(data) // 2 - 3],
    "cut off at a line end": lambda data: data[: data.rfind(b"\n", 0, len(data) * 95 // 100) + 1],
    "no bytes": lambda data: b"",
    "bytes that are no UTF-8": lambda data: data.replace(b"movie", b"mov\xefe", 1),
    "another encoding": lambda data: data.decode().encode("utf-16"),
    "zeros inside": lambda data: data[:5000] + bytes(512) + data[5512:],
    "a web page in its place": lambda data: b"<!DOCTYPE html><html><body>404</body></html>\n",
}
"""By what was done to the bytes of the file."""


def _corruptions(folder: Path, *, misses: bool) -> dict[str, Any]:
    found: dict[str, dict[str, int]] = {}
    for form, write in WRITERS.items():
        known_file, test = folder / f"known.{form}", folder / f"test.{form}"
        write(known_file, _rows(TRAIN, 1))
        rows = _rows(TEST, 2)
        write(test, rows)
        rivals = {"epochzero": partial(_findings, profile(known_file))}
        rivals |= {name: partial(ask, known_file) for name, ask in _rivals().items()}
        clean = {name: ask(test) for name, ask in rivals.items()}
        content = test.read_bytes()
        for corruption in (*ROWS, *BYTES):
            if corruption in ROWS:
                made = ROWS[corruption](rows)
                if not made and form != "jsonl":
                    continue
                write(test, made)
            else:
                test.write_bytes(BYTES[corruption](content) if form != "parquet" else b"PAR1")
                if form == "parquet" and corruption != "cut off in the middle":
                    continue
            for name, ask in rivals.items():
                right = bool(ask(test) - clean[name])
                counts = found.setdefault(f"{form} {name}", {"found": 0, "of": 0})
                counts["found"] += right
                counts["of"] += 1
                if misses and not right:
                    print(f"missed: {name}: {form}: {corruption}")
    found |= _file_corruptions(folder, misses=misses)
    return found


def _findings(known: Profile, path: Path) -> set[tuple[str, ...]]:
    return {(one.kind, one.column, one.severity) for one in validate(path, known).findings}


def _pandera(known: Path, path: Path) -> set[tuple[str, ...]]:
    """What a schema that is inferred from the known file says of another."""
    import pandera.pandas as pandera
    from pandera.errors import SchemaErrors

    schema = pandera.infer_schema(_frame(known))
    try:
        schema.validate(_frame(path), lazy=True)
    except SchemaErrors as errors:
        cases = errors.failure_cases
        return set(zip(cases["column"].astype(str), cases["check"].astype(str), strict=True))
    except Exception as error:
        return {("unreadable", type(error).__name__)}
    return set()


def _evidently(known: Path, path: Path) -> set[tuple[str, ...]]:
    """The tests that fail of its presets for drift and summary, with the known file as reference."""
    from evidently import Report
    from evidently.presets import DataDriftPreset, DataSummaryPreset

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = Report([DataDriftPreset(), DataSummaryPreset()], include_tests=True)
            tests = report.run(_frame(path), _frame(known)).dict()["tests"]
    except Exception as error:
        return {("unreadable", type(error).__name__)}
    # The name of a test has the reference's numbers behind a colon.
    return {(test["name"].partition(": ")[0],) for test in tests if "FAIL" in str(test["status"])}


def _rivals() -> Mapping[str, Callable[[Path, Path], set[tuple[str, ...]]]]:
    known = {"pandera": _pandera, "evidently": _evidently}
    return {name: ask for name, ask in known.items() if find_spec(name)}


def _frame(path: Path) -> Any:
    import pandas

    readers = {".csv": pandas.read_csv, ".parquet": pandas.read_parquet}
    return readers.get(path.suffix, partial(pandas.read_json, lines=True))(path)


# -- Files that are records, and arrays --------------------------------------------------------


def _image(path: Path, size: tuple[int, int], seed: int, mode: str = "RGB") -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)


def _sound(path: Path, rate: int, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        out.writeframes(np.random.default_rng(seed).bytes(rate // 4 * 2))


def _folder(folder: Path, form: str, first: int) -> Path:
    for n in range(first, first + 60):
        path = folder / ("cat" if n % 3 else "dog") / f"{n}.{form}"
        if form == "wav":
            _sound(path, 8000, n)
        else:
            _image(path, (24 + n % 9, 24), n)
    return folder


def _damage_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 40] = bytes(40)
    path.write_bytes(data)


FILES: Mapping[str, Callable[[Path, str], object]] = {
    "cut off": lambda f, form: f.write_bytes(f.read_bytes()[: f.stat().st_size // 2]),
    "no bytes": lambda f, form: f.write_bytes(b""),
    "a text in its place": lambda f, form: f.write_text("404: Not Found\n" * 40),
    "damaged in the middle": lambda f, form: _damage_middle(f),
    "a new class": lambda f, form: f.rename(_made(f.parent.parent / "bird") / f.name),
    "a class gone": lambda f, form: [each.unlink() for each in f.parent.glob("*")],
    "another mode or rate": lambda f, form: (
        _sound(f, 44_100, 1) if form == "wav" else _image(f, (24, 24), 1, "L")
    ),
    "the same file in two classes": lambda f, form: shutil.copy(
        f, next(each for each in f.parent.parent.iterdir() if each != f.parent) / f"copy-{f.name}"
    ),
    "far too large": lambda f, form: (
        f.write_bytes(f.read_bytes() * 2) if form == "wav" else _image(f, (900, 900), 1)
    ),
}


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _file_corruptions(folder: Path, *, misses: bool) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for form in ("wav", *(("png", "jpg") if find_spec("PIL") else ())):
        known = profile(_folder(folder / f"known-{form}", form, 0))
        clean = _findings(known, _folder(folder / f"clean-{form}", form, 60))
        counts = found[f"{form} epochzero"] = {"found": 0, "of": 0}
        for number, (corruption, corrupt) in enumerate(FILES.items()):
            if form == "wav" and corruption in ("damaged in the middle", "far too large"):
                continue  # any bytes are a sound
            made = _folder(folder / f"{form}-{number}", form, 60)
            corrupt(sorted(made.rglob(f"*.{form}"))[1], form)
            right = bool(_findings(known, made) - clean)
            counts["found"] += right
            counts["of"] += 1
            if misses and not right:
                print(f"missed: epochzero: {form}: {corruption}")
    return found


# -- Clean data --------------------------------------------------------------------------------


def _clean(folder: Path) -> dict[str, Any]:
    """Errors and warnings for parts of the same source."""
    counts: dict[str, dict[str, int]] = {}
    for form, write in WRITERS.items():
        known_file = folder / f"known.{form}"
        write(known_file, _rows(TRAIN, 1))
        known = profile(known_file)
        for seed in range(100, 100 + CLEAN_SEEDS):
            test = folder / f"test.{form}"
            write(test, _rows(TEST, seed))
            found = {"epochzero": [one.severity for one in validate(test, known).findings]}
            for name, ask in _rivals().items():
                found[name] = ["error"] * len(ask(known_file, test))
            for name, severities in found.items():
                _count(counts, f"{form} {name}", severities)
    for name, known_file, test in _halves(folder):
        findings = validate(test, profile(known_file)).findings
        _count(counts, f"{name} epochzero", [finding.severity for finding in findings])
        for rival, ask in _rivals().items():
            _count(counts, f"{name} {rival}", ["error"] * len(ask(known_file, test)))
    return counts


def _count(counts: dict[str, dict[str, int]], name: str, severities: Sequence[str]) -> None:
    here = counts.setdefault(name, {"parts": 0, "with_errors": 0, "with_warnings": 0})
    here["parts"] += 1
    here["with_errors"] += "error" in severities
    here["with_warnings"] += "warning" in severities


def _halves(folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """Random halves of measured data sets, as scikit-learn has them."""
    from sklearn import datasets

    for name in ("iris", "wine", "breast_cancer", "diabetes"):
        table = getattr(datasets, f"load_{name}")(as_frame=True).frame
        for seed in range(10):
            halves = folder / "known-half.csv", folder / "test-half.csv"
            mixed = table.sample(frac=1, random_state=seed)
            for half, path in enumerate(halves):
                mixed.iloc[half::2].to_csv(path, index=False)
            yield name, *halves


# -- Speed -------------------------------------------------------------------------------------


def _speed(folder: Path, megabytes: int, images: int) -> dict[str, Any]:
    taken: dict[str, Any] = {}
    for form in ("csv", "jsonl"):
        path = folder / f"large.{form}"
        _large(path, megabytes)
        taken[form] = {"megabytes": round(path.stat().st_size / 1e6)} | _commands(path, folder)
        path.unlink()
    if find_spec("PIL"):
        root = folder / "images"
        for n in range(images):
            _image(root / f"{n % 10}" / f"{n}.png", (32, 32), n)
        taken["png"] = {"files": images} | _commands(root, folder)
    return taken


def _large(path: Path, megabytes: int) -> None:
    """Rows over and over, their identities going on."""
    rows = _rows(5000, SEED)
    whole = ["".join(f",{'' if v is None else v}" for v in list(r.values())[1:]) for r in rows]
    number = 0
    with path.open("w", encoding="utf-8") as out:
        if path.suffix == ".csv":
            out.write(",".join(rows[0]) + "\n")
        while out.tell() < megabytes * 1_000_000:
            for row, rest in zip(rows, whole, strict=True):
                number += 1
                text = (
                    f"{number}{rest}" if path.suffix == ".csv" else json.dumps(row | {"id": number})
                )
                out.write(text + "\n")


def _commands(path: Path, folder: Path) -> dict[str, Any]:
    known, small = folder / "large.profile.json", folder / f"small-{path.name}"
    return {
        "profile": _run("profile", str(path), "-o", str(known)),
        "validate": _run("validate", str(path), "--profile", str(known)),
        "sample": _run("sample", str(path), "-o", str(small)),
    }


def _run(*arguments: str) -> dict[str, float]:
    """Seconds of processor time and megabytes of memory of one command."""
    command = [sys.executable, "-m", "epochzero", "data", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}")
    return {
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "megabytes": round(used.ru_maxrss / 1024),
    }


if __name__ == "__main__":
    main()
