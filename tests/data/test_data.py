"""Data sets: a profile is near the data it was made of, data like those conform, and others do not."""

from __future__ import annotations

import csv
import functools
import gzip
import json
import os
import struct
import sys
import wave
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochzero.data import (
    CORNERS,
    ColumnProfile,
    Profile,
    Validated,
    profile,
    read_profile,
    sample,
    synthesize,
    validate,
)
from epochzero.data.comparison import DataFinding
from epochzero.data.formats import arrays
from epochzero.errors import InputError

COLUMNS = ("age", "income", "city", "note", "day", "label")
few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


Rows = list[dict[str, Any]]


def rows(count: int = 400, seed: int = 0) -> Rows:
    """Records of their own for each test; drawing them takes longer than most tests."""
    return [dict(row) for row in drawn(count, seed)]


@functools.cache
def drawn(count: int, seed: int) -> Rows:
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        label = random.choice(["cat", "dog", "owl"], p=[0.6, 0.3, 0.1])
        made.append(
            {
                "age": int(random.integers(18, 90)),
                "income": "" if random.random() < 0.2 else float(random.lognormal(10, 1)),
                "city": str(random.choice(["Paris", "Rome"])),
                "note": " ".join("".join(random.choice(list("abcdé"), 6)) for _ in range(random.integers(1, 9))),
                "day": f"2024-{random.integers(1, 13):02}-{random.integers(1, 29):02}",
                "label": str(label),
            }
        )  # fmt: skip
    return made


def write_csv(path: Path, records: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, records[0])
        writer.writeheader()
        writer.writerows(records)
    return path


def write_jsonl(path: Path, records: list[dict[str, Any]]) -> Path:
    lines = (json.dumps({k: None if v == "" else v for k, v in r.items()}) for r in records)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def wav(seconds: float = 0.5, rate: int = 8000, level: int = 0) -> bytes:
    sound = bytes([level]) * (int(seconds * rate) * 2)
    described = struct.pack("<HHIIHH", 1, 1, rate, rate * 2, 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + described + b"data" + struct.pack("<I", len(sound))
    return b"RIFF" + struct.pack("<I", len(body) + len(sound)) + body + sound


def column(found: Profile, name: str) -> ColumnProfile:
    one = found.tables[0].column(name)
    assert one is not None
    return one


def kinds(path: Path, known: Profile) -> set[str]:
    return {finding.kind for finding in validate(path, known).findings}


def write_set(folder: Path, form: str, seed: int = 0) -> Path:
    """A data set of a format, with classes where the format can have them."""
    random = np.random.default_rng(seed)
    if form == "csv":
        return write_csv(folder / "d.csv", rows(seed=seed))
    if form.endswith(".gz"):
        plain = write_set(folder, form.removesuffix(".gz"), seed)
        packed = plain.with_name(f"{plain.name}.gz")
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
        return packed
    if form == "jsonl":
        return write_jsonl(folder / "d.jsonl", rows(seed=seed))
    if form == "json":
        path = folder / "d.json"
        path.write_text(json.dumps({"data": rows(seed=seed)}))
        return path
    if form == "text":
        path = folder / "d.txt"
        path.write_text("".join(f"{row['note']}\n" for row in rows(seed=seed)), encoding="utf-8")
        return path
    if form == "npy":
        np.save(folder / "d.npy", random.normal(size=(300, 4)).astype(np.float32))
        return folder / "d.npy"
    if form == "npz":
        x = random.integers(0, 256, (120, 5, 5), dtype=np.uint8)
        np.savez(folder / "d.npz", x=x, y=random.integers(0, 3, 120))
        return folder / "d.npz"
    if form == "parquet":
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        records = [{k: None if v == "" else v for k, v in row.items()} for row in rows(seed=seed)]
        parquet.write_table(arrow.Table.from_pylist(records), folder / "d.parquet")
        return folder / "d.parquet"
    for blue, name in enumerate(("cat", "dog")):
        for n in range(20):
            place = folder / "set" / name / f"{n}.{form}"
            place.parent.mkdir(parents=True, exist_ok=True)
            if form == "wav":
                place.write_bytes(wav(0.1 + 0.01 * random.integers(0, 9), level=blue))
            else:
                image = pytest.importorskip("PIL.Image")
                image.new("RGB", (int(random.integers(8, 20)), 8), (n, n, 9 * blue)).save(place)
    return folder / "set"


FORMATS = ["csv", "jsonl", "json", "text", "npy", "npz", "parquet", "wav", "png", "jpg"]
FORMATS += ["csv.gz", "jsonl.gz", "json.gz", "text.gz"]


# -- Profile -----------------------------------------------------------------------------------


def test_a_profile_says_what_the_columns_are(tmp_path: Path) -> None:
    found = profile(write_csv(tmp_path / "d.csv", rows()))
    assert {c.name: c.kind for c in found.tables[0].columns} == {
        "age": "number", "income": "number", "city": "category", "note": "text", "day": "date",
        "label": "category",
    }  # fmt: skip
    assert found.tables[0].label == "label"
    income = column(found, "income")
    assert income.missing == sum(row["income"] == "" for row in rows())
    assert income.numbers is not None
    assert income.numbers.mean == pytest.approx(
        np.mean([row["income"] for row in rows() if row["income"] != ""])
    )
    assert dict(column(found, "label").categories)["owl"] == sum(
        row["label"] == "owl" for row in rows()
    )


def test_numbers_are_summarized_by_class(tmp_path: Path) -> None:
    records = [{"x": n + 1000 * (n % 2), "kind": "ab"[n % 2]} for n in range(100)]
    found = profile(write_csv(tmp_path / "d.csv", records), label="kind")
    summary = dict(column(found, "x").by_label)
    assert summary["a"].max == 98
    assert summary["b"].min == 1001


@pytest.mark.parametrize("form", FORMATS)
def test_a_profile_is_the_same_when_it_is_read_again(tmp_path: Path, form: str) -> None:
    found = profile(write_set(tmp_path, form))
    (tmp_path / "p").write_text(json.dumps(found.to_dict()))
    assert read_profile(tmp_path / "p") == found


def test_a_profile_holds_no_free_text_and_no_rare_category(tmp_path: Path) -> None:
    records = rows()
    records[0]["city"] = "Secretville"
    records[1]["note"] = "swordfish " * 3
    written = json.dumps(profile(write_csv(tmp_path / "d.csv", records)).to_dict())
    assert "Secretville" not in written
    assert "swordfish" not in written
    assert not any(row["note"] in written for row in records)


def test_quantiles_of_many_numbers_are_as_near_as_promised(tmp_path: Path) -> None:
    values = np.random.default_rng(1).lognormal(size=200_000)
    np.save(tmp_path / "d.npy", values)
    numbers = column(profile(tmp_path / "d.npy"), "value").numbers
    assert numbers is not None
    assert (values < numbers.quantiles[12]).mean() == pytest.approx(0.5, abs=0.014)
    assert (numbers.min, numbers.max) == (values.min(), values.max())
    assert numbers.std == pytest.approx(values.std())


def test_shards_are_one_table_and_splits_are_several(tmp_path: Path) -> None:
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"):
        write_csv(tmp_path / f"{name}.csv", rows(50))
    found = profile(tmp_path)
    assert {table.name: table.files for table in found.tables} == {
        "train-*-of-*.csv": 2,
        "test-*-of-*.csv": 1,
    }


def test_a_large_folder_can_be_read_in_part(tmp_path: Path) -> None:
    found = profile(write_set(tmp_path, "wav"), most_files=10)
    assert (found.tables[0].files, found.tables[0].records) == (40, 10)
    assert not found.complete
    assert found.notes


def test_a_label_that_no_table_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no column 'price'"):
        profile(write_csv(tmp_path / "d.csv", rows()), label="price")


# -- Validate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_data_conform_to_their_own_profile(tmp_path: Path, form: str) -> None:
    path = write_set(tmp_path, form)
    assert validate(path, profile(path)).findings == ()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_another_sample_of_the_same_source_conforms(tmp_path: Path, form: str, seed: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    known = profile(write_set(tmp_path / "a", form))
    assert validate(write_set(tmp_path / "b", form, seed), known).findings == ()


@few
@given(st.sampled_from(COLUMNS))
def test_a_dropped_column_is_found(tmp_path: Path, name: str) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    fewer = [{key: value for key, value in row.items() if key != name} for row in rows()]
    found = validate(write_csv(tmp_path / "e.csv", fewer), known).findings
    assert [(f.severity, f.kind, f.column) for f in found] == [("error", "missing_column", name)]
    known = profile(tmp_path / "e.csv")
    assert kinds(tmp_path / "d.csv", known) == {"extra_column"}


@few
@given(st.integers(1, 400), st.sampled_from([1e9, -1e9]))
def test_a_value_out_of_range_is_found_with_its_record(
    tmp_path: Path, record: int, value: float
) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    changed = rows()
    changed[record - 1]["income"] = value
    (finding,) = validate(write_csv(tmp_path / "d.csv", changed), known).findings
    assert (finding.kind, finding.column, finding.file) == ("range", "income", "d.csv")
    assert finding.record == record


@few
@given(st.integers(1, 400), st.text("xyz", min_size=1, max_size=9))
def test_a_new_class_is_an_error_with_its_record(tmp_path: Path, record: int, name: str) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    changed = rows()
    changed[record - 1]["label"] = name
    (finding,) = validate(write_csv(tmp_path / "d.csv", changed), known).findings
    assert (finding.severity, finding.kind, finding.record) == ("error", "new_class", record)


@few
@given(st.integers(1, 400))
def test_a_value_of_another_kind_is_found_with_its_record(tmp_path: Path, record: int) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    changed = rows()
    changed[record - 1]["age"] = "old"
    (finding,) = validate(write_csv(tmp_path / "d.csv", changed), known).findings
    assert (finding.severity, finding.kind, finding.record) == ("error", "type", record)


@few
@given(st.integers(10, 10_000))
def test_a_file_that_was_cut_off_is_found(tmp_path: Path, size: int) -> None:
    path = write_csv(tmp_path / "d.csv", rows())
    known = profile(path)
    content = path.read_bytes()[:size]
    path.write_bytes(content.rstrip(b"\r\n"))
    assert "unfinished_line" in kinds(path, known)


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_was_cut_off_is_found_in_every_format(tmp_path: Path, form: str) -> None:
    path = write_set(tmp_path, form)
    known = profile(path)
    file = next(file for file in [path, *path.rglob("*.*")] if file.is_file())
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert kinds(path, known) & {"broken", "unfinished_line", "unparsable"}


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_file_is_found_in_every_format(tmp_path: Path, form: str) -> None:
    path = write_set(tmp_path, form)
    known = profile(path)
    file = next(file for file in [path, *path.rglob("*.*")] if file.is_file())
    file.write_bytes(b"")
    assert kinds(path, known) & {"empty_file", "broken"}


@pytest.mark.parametrize(
    ("encoding", "kind"), [("latin-1", "not_utf8"), ("utf-16", "encoding"), ("utf-8-sig", "encoding")]
)  # fmt: skip
def test_another_encoding_is_found(tmp_path: Path, encoding: str, kind: str) -> None:
    path = write_csv(tmp_path / "d.csv", rows())
    known = profile(path)
    path.write_bytes(path.read_text(encoding="utf-8").encode(encoding))
    assert kind in kinds(path, known)


def test_another_share_of_the_classes_is_found_and_chance_is_not(tmp_path: Path) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    owls = [row for row in rows(2000, 3) if row["label"] == "owl"]
    changed = rows(200, 4) + owls[:150]
    assert kinds(write_csv(tmp_path / "d.csv", changed), known) == {"label_shift"}


def test_a_class_that_is_gone_is_found(tmp_path: Path) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    changed = [row for row in rows() if row["label"] != "owl"]
    assert "missing_class" in kinds(write_csv(tmp_path / "d.csv", changed), known)


def changed(column: str, change: Callable[[Any], Any], every: int = 1) -> Rows:
    """The records of another seed, of which each n-th has another value in a column."""
    return [
        row | {column: change(row[column])} if n % every == 0 and row[column] != "" else row
        for n, row in enumerate(rows(seed=1))
    ]


def test_other_shares_of_a_feature_are_found_and_chance_is_not(tmp_path: Path) -> None:
    def flagged(seed: int, likely: float) -> Rows:
        draw = np.random.default_rng(seed)
        return [row | {"member": bool(draw.random() < likely)} for row in rows(seed=seed)]

    known = profile(write_csv(tmp_path / "known.csv", flagged(0, 0.8)))
    assert not kinds(write_csv(tmp_path / "d.csv", flagged(1, 0.8)), known)
    assert kinds(write_csv(tmp_path / "d.csv", flagged(1, 0.2)), known) == {"distribution"}


def by_age(records: Rows) -> Rows:
    """The records with classes that follow from the age."""
    return [row | {"label": "owl" if row["age"] > 60 else "cat"} for row in records]


def shuffled_labels(records: Rows) -> Rows:
    labels = [row["label"] for row in records]
    np.random.default_rng(0).shuffle(labels)
    return [row | {"label": label} for row, label in zip(records, labels, strict=True)]


def related(records: Rows) -> Rows:
    """The records with numbers that depend on the age."""
    return [row | {"height": row["age"] % 7 + row["age"] / 9} for row in records]


def shuffled(records: Rows) -> Rows:
    heights = [row["height"] for row in records]
    np.random.default_rng(0).shuffle(heights)
    return [row | {"height": height} for row, height in zip(records, heights, strict=True)]


def titled(records: Rows, change: Callable[[str], str] = str) -> Rows:
    """The records with a title that starts with a capital and ends with a full stop."""
    return [row | {"title": change(f"At {row['age']} years, {row['income']}.")} for row in records]


DIFFERENT: Mapping[str, tuple[Rows, str, str]] = {
    "standardized": (changed("income", lambda n: (n - 36_000) / 47_000), "distribution", "income"),
    "constant": (changed("income", lambda _: 21_000.0), "constant", "income"),
    "filled in": ([row | {"income": row["income"] or 9_000.0} for row in rows(seed=1)], "missing", "income"),
    "clipped": (changed("age", lambda n: min(n, 50)), "distribution", "age"),
    "shuffled labels": (shuffled_labels(by_age(rows(seed=1))), "relation", "age"),
    "shuffled among the others": (shuffled(related(rows(seed=1))), "relation", "height"),
    "lower case": (titled(rows(seed=1), str.lower), "distribution", "capital start of title"),
    "reversed": (titled(rows(seed=1), lambda text: text[::-1]), "distribution", "capital start of title"),
    "sorted by class": (sorted(by_age(rows(seed=1)), key=lambda row: row["label"]), "sorted", "label"),
    "wrong encoding": (changed("note", lambda t: t + " caf\u00c3\u00a9", 50), "garbled", "note"),
    "blanks": (changed("note", lambda _: "  ", 50), "empty_text", "note"),
    "rounded": (changed("income", lambda n: round(n / 2_000) * 2_000.0), "fewer_values", "income"),
    "cut": (changed("note", lambda text: text[:9]), "distribution", "note"),
    "capitals": (changed("note", str.upper), "alphabet", "note"),
    "markup in a tenth": (changed("note", lambda text: f"<p>{text}</p>", 10), "alphabet", "note"),
    "one record under two labels": ([*by_age(rows(seed=1)), by_age(rows(seed=1))[0] | {"label": "owl"},
                                     by_age(rows(seed=1))[0] | {"label": "cat"}], "conflicting_labels", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_data_of_which_a_person_would_see_that_they_differ(tmp_path: Path, name: str) -> None:
    records, kind, where = DIFFERENT[name]
    source = by_age(rows()) if {row["label"] for row in records} == {"owl", "cat"} else rows()
    source = related(source) if "height" in records[0] else source
    source = titled(source) if "title" in records[0] else source
    known = profile(write_csv(tmp_path / "known.csv", source))
    found = validate(write_csv(tmp_path / "d.csv", records), known).findings
    assert (kind, where) in {(finding.kind, finding.column) for finding in found}
    assert {finding.severity for finding in found} == {"warning"}


def test_another_sample_of_columns_that_depend_on_one_another_is_no_finding(tmp_path: Path) -> None:
    known = profile(write_csv(tmp_path / "known.csv", titled(related(by_age(rows())))))
    assert known.tables[0].relations
    (tmp_path / "p").write_text(json.dumps(known.to_dict()))
    assert read_profile(tmp_path / "p") == known
    for seed in range(1, 6):
        records = titled(related(by_age(rows(seed=seed))))
        assert not kinds(write_csv(tmp_path / "d.csv", records), known)


def test_a_value_that_nearly_all_records_have_may_be_constant(tmp_path: Path) -> None:
    def flags(count: int) -> Rows:
        return [{"n": n / 7, "flag": float(n % 100 == 3)} for n in range(count)]

    known = profile(write_csv(tmp_path / "known.csv", flags(1000)))
    few = [row for row in flags(900) if not row["flag"]][:30]
    assert "constant" not in kinds(write_csv(tmp_path / "d.csv", few), known)


def test_an_identifier_that_occurs_twice_is_found_with_its_record(tmp_path: Path) -> None:
    numbered = [row | {"id": n} for n, row in enumerate(rows())]
    known = profile(write_csv(tmp_path / "known.csv", numbered))
    numbered[300]["id"] = 7
    (finding,) = validate(write_csv(tmp_path / "d.csv", numbered), known).findings
    assert (finding.kind, finding.column, finding.record) == ("repeated", "id", 301)


def posts(seed: int) -> Rows:
    """Records with a time in seconds, a code of five digits and a long text."""
    random = np.random.default_rng(seed)
    return [
        {"time": int(random.integers(1_700_000_000, 1_730_000_000)), "code": f"{random.integers(100_000):05}", "text": f"{random.random()} " * 6}
        for _ in range(400)
    ]  # fmt: skip


def test_codes_that_lost_the_zeros_in_front_are_found(tmp_path: Path) -> None:
    known = profile(write_csv(tmp_path / "known.csv", posts(0)))
    assert not kinds(write_csv(tmp_path / "d.csv", posts(1)), known)
    read_as_numbers = [row | {"code": int(row["code"])} for row in posts(1)]
    found = validate(write_csv(tmp_path / "d.csv", read_as_numbers), known).findings
    assert [(finding.kind, finding.column) for finding in found] == [("lost_zeros", "code")]


PARTS_CHANGED: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "time": (lambda seconds: seconds * 1000, "range"),
    "code": (lambda digits: digits[3:], "length"),
    "text": (lambda _: "[removed]", "repeated"),
}


@pytest.mark.parametrize("column", PARTS_CHANGED)
def test_a_part_of_the_values_that_is_unlike_the_others_is_found(
    tmp_path: Path, column: str
) -> None:
    change, kind = PARTS_CHANGED[column]
    known = profile(write_jsonl(tmp_path / "known.jsonl", posts(0)))
    records = posts(1)
    for record in records[9::10]:
        record[column] = change(record[column])
    findings = validate(write_jsonl(tmp_path / "d.jsonl", records), known).findings
    assert (kind, column) in {(finding.kind, finding.column) for finding in findings}


def test_numbers_that_are_unique_by_chance_are_no_identifiers(tmp_path: Path) -> None:
    known = profile(write_jsonl(tmp_path / "known.jsonl", posts(0)))
    records = [record | {"text": f"{n} {record['text']}"} for n, record in enumerate(posts(1))]
    records[7]["time"] = records[3]["time"]
    assert "repeated" not in {
        finding.kind
        for finding in validate(write_jsonl(tmp_path / "d.jsonl", records), known).findings
        if finding.column == "time"
    }


def test_a_constant_column_has_one_finding(tmp_path: Path) -> None:
    known = profile(write_jsonl(tmp_path / "known.jsonl", [{"x": n / 7} for n in range(100)]))
    (finding,) = validate(write_jsonl(tmp_path / "d.jsonl", [{"x": 3.5}] * 100), known).findings
    assert finding.kind == "constant"


def test_a_number_to_be_predicted_has_no_classes(tmp_path: Path) -> None:
    measured = [{"age": row["age"], "label": 100 + 7 * n} for n, row in enumerate(rows())]
    known = profile(write_csv(tmp_path / "known.csv", measured[::2]))
    assert kinds(write_csv(tmp_path / "d.csv", measured[1::2]), known) == set()


def test_a_missing_number_is_not_another_type_of_array(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    numbers = [float(n) for n in range(100)]
    parquet.write_table(arrow.table({"x": numbers}), tmp_path / "known.parquet")
    parquet.write_table(arrow.table({"x": [*numbers[1:], None]}), tmp_path / "d.parquet")
    (finding,) = validate(tmp_path / "d.parquet", profile(tmp_path / "known.parquet")).findings
    assert (finding.severity, finding.kind, finding.record) == ("warning", "missing", 100)


def test_an_image_in_two_classes_and_damage_inside_one_are_found(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("simplejpeg")
    noise = np.random.default_rng(0)
    for n in range(8):
        file = tmp_path / "set" / ("cat" if n % 2 else "dog") / f"{n}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(noise.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(file)
    known = profile(tmp_path / "set")
    (tmp_path / "set/cat/copy.jpg").write_bytes((tmp_path / "set/dog/0.jpg").read_bytes())
    damaged = bytearray((tmp_path / "set/cat/3.jpg").read_bytes())
    damaged[2000:2040] = bytes(40)
    (tmp_path / "set/cat/3.jpg").write_bytes(damaged)
    assert kinds(tmp_path / "set", known) == {"conflicting_labels", "damaged"}


def test_test_records_that_are_in_the_training_data_are_found(tmp_path: Path) -> None:
    write_csv(tmp_path / "train.csv", rows(300))
    write_csv(tmp_path / "test.csv", rows(50, seed=9))
    known = profile(tmp_path)
    assert validate(tmp_path, known).findings == ()
    write_csv(tmp_path / "test.csv", rows(50, seed=9) + rows(7))
    (finding,) = validate(tmp_path, known).findings
    assert (finding.kind, finding.table, finding.count) == ("duplicates", "test.csv", 7)
    assert (finding.file, finding.record) == ("test.csv", 51)


def test_records_that_repeat_anyway_are_no_duplicates(tmp_path: Path) -> None:
    for name in ("train", "test"):
        write_csv(tmp_path / f"{name}.csv", [{"label": "ab"[n % 2]} for n in range(200)])
    assert validate(tmp_path, profile(tmp_path)).findings == ()


def test_a_longer_text_is_found(tmp_path: Path) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    changed = rows()
    changed[41]["note"] = "a" * 5000
    (finding,) = validate(write_csv(tmp_path / "d.csv", changed), known).findings
    assert (finding.kind, finding.record) == ("length", 42)


def test_another_shape_of_arrays_is_found(tmp_path: Path) -> None:
    known = profile(write_set(tmp_path, "npz"))
    np.savez(tmp_path / "d.npz", x=np.zeros((120, 5, 6), np.uint8), y=np.arange(120) % 3)
    assert "type" in kinds(tmp_path / "d.npz", known)


def test_an_empty_folder_lacks_what_the_profile_knows(tmp_path: Path) -> None:
    known = profile(write_set(tmp_path, "csv"))
    (tmp_path / "empty").mkdir()
    (finding,) = validate(tmp_path / "empty", known).findings
    assert (finding.severity, finding.kind, finding.table) == ("error", "missing_table", "d.csv")


def test_a_file_that_was_cut_off_at_a_line_end_is_noted(tmp_path: Path) -> None:
    path = write_set(tmp_path, "csv")
    known = profile(path)
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:-9]))
    found = validate(path, known)
    assert (found.findings, found.notes) == ((), ("d.csv: 391 records; the profile has 400",))


def test_a_part_is_compared_by_its_values_alone(tmp_path: Path) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    ordered = sorted(rows(seed=1), key=lambda row: row["label"])
    path = write_csv(tmp_path / "d.csv", [*ordered, ordered[0] | {"city": "Oslo"}])
    few = validate(path, known, most_records=1)
    assert [finding.kind for finding in few.findings] == ["new_class"]
    assert few.notes == ("d.csv: only the beginning was read",)


def test_the_worst_comes_first(tmp_path: Path) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    changed = [{"new": 1, **row} for row in rows()]
    changed[0]["age"] = "old"
    found = validate(write_csv(tmp_path / "d.csv", changed), known).findings
    assert [finding.severity for finding in found] == ["error", "warning"]


# -- What is computed of each record -----------------------------------------------------------


def vectors(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(0.2, 1, (400, 32)).astype(np.float32)


@pytest.mark.parametrize(
    ("change", "column"),
    [
        (lambda a: a * 0.5, "deviation of value"),
        (lambda a: np.where((np.arange(len(a)) % 30 == 3)[:, None], 0, a), "norm of value"),
        (lambda a: a / np.linalg.norm(a, axis=1, keepdims=True), "value"),
        (lambda a: np.sort(a, axis=1), "roughness of value"),
    ],
)
def test_vectors_are_compared_as_a_whole(tmp_path: Path, change: Any, column: str) -> None:
    np.save(tmp_path / "v.npy", vectors(1))
    known = profile(tmp_path / "v.npy")
    np.save(tmp_path / "v.npy", vectors(2))
    assert validate(tmp_path / "v.npy", known).findings == ()
    np.save(tmp_path / "v.npy", change(vectors(2)))
    found = validate(tmp_path / "v.npy", known).findings
    assert column in {finding.column for finding in found}


def moments(count: int, seed: int, *, hour: int = 0, zone: str = "+01:00") -> list[dict[str, Any]]:
    draw = np.random.default_rng(seed)
    days, hours = draw.integers(1, 28, count), draw.integers(8, 16, count)
    months = draw.integers(1, 13, count)
    return [
        {"at": f"2024-{month:02}-{day:02}T{each + hour:02}:00:00{zone}"}
        for month, day, each in zip(months, days, hours, strict=True)
    ]


def test_hours_time_zones_and_narrower_dates_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    def found(rows: list[dict[str, Any]], known: Profile | None = None) -> set[tuple[str, str]]:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        if known is None:
            return set()
        return {(each.kind, each.column) for each in validate(path, known).findings}

    found(moments(600, 1))
    known = profile(path)
    assert found(moments(300, 2), known) == set()
    assert found(moments(300, 2, hour=6), known) == {("distribution", "hour of at")}
    assert ("new_class", "time zone of at") in found(moments(300, 2, zone=""), known)
    march = [row for row in moments(4000, 2) if row["at"].startswith("2024-03")]
    assert found(march, known) == {("distribution", "at")}
    # Time goes on: later dates are no difference.
    later = [{"at": row["at"].replace("2024", "2025")} for row in moments(300, 2)]
    assert ("distribution", "at") not in found(later, known)


@pytest.mark.parametrize("form", ["png", "wav"])
def test_contents_of_files_are_compared(tmp_path: Path, form: str) -> None:
    image = pytest.importorskip("PIL.Image")

    def written(name: str, seed: int, gain: float) -> Path:
        draw = np.random.default_rng(seed)
        for n in range(60):
            file = tmp_path / name / "ab"[n % 2] / f"{n}.{form}"
            file.parent.mkdir(parents=True, exist_ok=True)
            level = draw.uniform(60, 200)
            if form == "png":
                pixels = np.clip(draw.normal(level, 20, (16, 16, 3)) * gain, 0, 255)
                image.fromarray(pixels.astype(np.uint8)).save(file)
            else:
                samples = draw.normal(0, level * 20, 2000) * gain
                with wave.open(str(file), "wb") as out:
                    out.setparams((1, 2, 8000, 0, "NONE", ""))
                    out.writeframes(samples.astype("<i2").tobytes())
        return tmp_path / name

    known = profile(written("known", 1, 1.0))
    assert validate(written("clean", 2, 1.0), known).findings == ()
    found = validate(written("weak", 3, 0.3), known).findings
    name = {"png": "brightness of image", "wav": "loudness of sound"}[form]
    assert ("distribution", name) in {(each.kind, each.column) for each in found}


# -- Synthesize --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_synthesized_data_conform_and_are_the_same_under_a_seed(tmp_path: Path, form: str) -> None:
    known = profile(write_set(tmp_path, form))
    first = synthesize(known, tmp_path / "a", count=200, seed=5, corners=[])
    synthesize(known, tmp_path / "b", count=200, seed=5, corners=[])
    names = sorted(f.relative_to(tmp_path / "a") for f in (tmp_path / "a").rglob("*.*"))
    assert all(
        (tmp_path / "a" / n).read_bytes() == (tmp_path / "b" / n).read_bytes() for n in names
    )
    assert without_contents(validate(first[0], known)) == []


def without_contents(validated: Validated) -> list[DataFinding]:
    """The findings that are not about the contents of images and sounds, which are noise if they are synthesized."""
    return [f for f in validated.findings if not f.column.endswith((" of image", " of sound"))]


def test_a_profile_of_synthesized_data_is_near(tmp_path: Path) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows(3000)))
    (regular,) = synthesize(known, tmp_path / "made", count=3000, corners=[])
    found = profile(regular)
    for before, after in zip(known.tables[0].columns, found.tables[0].columns, strict=True):
        assert (before.name, before.kind) == (after.name, after.kind)
        assert after.missing / after.count == pytest.approx(before.missing / before.count, abs=0.03)
        for one, other in ((before.numbers, after.numbers), (before.lengths, after.lengths)):
            if one is not None and other is not None:
                spread = one.quantiles[17] - one.quantiles[7]
                assert other.quantiles[12] == pytest.approx(one.quantiles[12], abs=0.1 * spread + 1)
        for name, count in before.categories:
            assert dict(after.categories)[name] / 3000 == pytest.approx(count / 3000, abs=0.04)


def test_synthesized_texts_repeat_no_word(tmp_path: Path) -> None:
    records = rows()
    known = profile(write_csv(tmp_path / "d.csv", records))
    (regular,) = synthesize(known, tmp_path / "made", count=300, corners=[])
    with next(regular.glob("*.csv")).open(encoding="utf-8") as handle:
        made = {row["note"] for row in csv.DictReader(handle)}
    assert not made & {row["note"] for row in records}


def test_corner_cases_are_what_their_names_say(tmp_path: Path) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    made = synthesize(known, tmp_path / "made", count=50)
    assert [folder.name for folder in made] == ["regular", *CORNERS]

    def records(case: str) -> list[dict[str, str]]:
        with (tmp_path / "made" / case / "d.csv").open(encoding="utf-8") as handle:
            return list(csv.DictReader(handle))

    assert records("empty") == []
    assert len(records("single-record")) == 1
    assert len(records("odd-batch")) % 256 == 1
    assert {row["label"] for row in records("single-class")} == {"cat"}
    assert "owl" not in {row["label"] for row in records("missing-class")}
    longest = column(known, "note").lengths
    assert longest is not None
    assert {len(row["note"]) for row in records("longest")} == {longest.max}
    assert {row["income"] for row in records("missing-values")} == {""}
    assert kinds(tmp_path / "made/bad-encoding", known) >= {"not_utf8"}
    assert kinds(tmp_path / "made/truncated", known) >= {"unfinished_line"}


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_its_corner_cases(tmp_path: Path, form: str) -> None:
    known = profile(write_set(tmp_path, form))
    made = {folder.name for folder in synthesize(known, tmp_path / "made", count=10)}
    assert {"regular", "empty", "longest", "extreme", "truncated"} <= made


def test_what_cannot_be_synthesized_is_a_clear_error(tmp_path: Path) -> None:
    known = profile(write_csv(tmp_path / "d.csv", rows()))
    with pytest.raises(InputError, match="unknown corner case 'huge'"):
        synthesize(known, tmp_path / "made", corners=["huge"])
    with pytest.raises(InputError, match="already exists"):
        synthesize(known, tmp_path)
    text = json.dumps(known.to_dict()).replace('"d.csv"', '"../d.csv"')
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InputError, match="outside"):
        synthesize(read_profile(tmp_path / "p.json"), tmp_path / "made")


def test_images_of_several_modes_and_formats_are_synthesized(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for n, (mode, suffix) in enumerate([("RGBA", "png"), ("CMYK", "jpg"), ("L", "jpg")] * 10):
        place = tmp_path / "set" / "ab"[n % 2] / f"{n}.{suffix}"
        place.parent.mkdir(parents=True, exist_ok=True)
        image.new(mode, (8, 8)).save(place)
    known = profile(tmp_path / "set")
    (regular,) = synthesize(known, tmp_path / "made", count=60, corners=[])
    assert without_contents(validate(regular, known)) == []


def test_arrays_of_different_lengths_keep_them(tmp_path: Path) -> None:
    x, y = np.arange(600).reshape(300, 2), np.arange(50)
    np.savez(tmp_path / "d.npz", x_train=x, x_test=y)
    known = profile(tmp_path / "d.npz")
    assert [c.count for c in known.tables[0].columns] == [300, 50]
    assert validate(tmp_path / "d.npz", known).findings == ()
    sample(tmp_path / "d.npz", tmp_path / "small", count=20)
    with np.load(tmp_path / "small/d.npz") as drawn:
        assert set(drawn["x_test"]) <= set(y.tolist())
        assert len(drawn["x_train"]) == len(np.unique(drawn["x_train"], axis=0))


# -- Sample ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_a_sample_is_small_like_the_whole_and_the_same_under_a_seed(
    tmp_path: Path, form: str
) -> None:
    path = write_set(tmp_path, form)
    before = {f: f.read_bytes() for f in [path, *path.rglob("*")] if f.is_file()}
    (drawn,) = sample(path, tmp_path / "a", count=30)
    sample(path, tmp_path / "b", count=30)
    assert drawn.corners <= drawn.drawn < drawn.records
    assert {f: f.read_bytes() for f in before} == before
    known = profile(path)
    small = tmp_path / "a" / path.name if path.is_file() else tmp_path / "a"
    assert profile(small).tables[0].records == drawn.drawn
    assert not [f for f in validate(small, known).findings if f.severity == "error"]
    for file in (tmp_path / "a").rglob("*.*"):
        assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()


def test_a_sample_keeps_the_corner_cases(tmp_path: Path) -> None:
    records = rows(2000)
    records[700]["label"] = "newt"
    records[800]["note"] = "z" * 900
    records[900]["age"] = 4000
    sample(write_csv(tmp_path / "d.csv", records), tmp_path / "small", count=40)
    with (tmp_path / "small/d.csv").open(encoding="utf-8") as handle:
        drawn = list(csv.DictReader(handle))
    assert len(drawn) == 40
    assert {"cat", "dog", "owl", "newt"} == {row["label"] for row in drawn}
    assert "z" * 900 in {row["note"] for row in drawn}
    assert "4000" in {row["age"] for row in drawn}
    assert "" in {row["income"] for row in drawn}


def test_a_sample_is_never_written_into_the_data(tmp_path: Path) -> None:
    write_csv(tmp_path / "set/d.csv", rows())
    with pytest.raises(InputError, match="is inside the data set"):
        sample(tmp_path / "set", tmp_path / "set/small")
    assert sorted(os.listdir(tmp_path / "set")) == ["d.csv"]


# -- Bad input ---------------------------------------------------------------------------------


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["csv", "tsv", "jsonl", "json", "txt", "npy", "npz", "wav"]),
    st.binary(max_size=200),
)
def test_any_bytes_have_a_profile_and_conform_to_it(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"d.{suffix}"
    path.write_bytes(content)
    found = profile(path)
    assert found.tables[0].records >= 0
    json.dumps(found.to_dict(), allow_nan=False)
    validate(path, found)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("d.csv", b"a,b\n1,2\n3\n", "fields"),
        ("d.csv", b"a,a\n1,2\n", "duplicate_column"),
        ("d.csv", b"a,b\n1,\x002\n", "nul"),
        ("d.csv", b'a,b\n1,"' + b"x\n" * 200_000, "unparsable"),
        ("d.jsonl", b'{"a": 1}\n{"a": \n', "unparsable"),
        ("d.jsonl", b"[" * 100_000 + b"\n", "unparsable"),
        ("d.json", b"[" * 100_000, "unparsable"),
        ("d.txt", b"a\n\xff\n", "not_utf8"),
        ("d.txt", b"x" * (1 << 24) + b"\n", "long_line"),
        ("d.wav", b"RIFF\0\0\0\0WAVEdata", "broken"),
        ("d.npy", b"\x93NUMPY", "broken"),
        ("d.npz", b"PK\x03\x04", "broken"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told(
    tmp_path: Path, name: str, content: bytes, fault: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert fault in {each.kind for each in profile(tmp_path / name).tables[0].faults}


def test_an_image_that_is_damaged_in_the_middle_is_found(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for n in range(3):
        noise = np.random.default_rng(n).integers(0, 256, (32, 32), dtype=np.uint8)
        image.fromarray(noise).save(tmp_path / f"{n}.png")
    content = bytearray((tmp_path / "1.png").read_bytes())
    content[500:540] = bytes(40)
    (tmp_path / "1.png").write_bytes(content)
    (fault,) = profile(tmp_path).tables[0].faults
    assert (fault.kind, fault.file) == ("broken", "1.png")


def test_zeros_that_a_decoder_takes_for_a_picture_are_found(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    simplejpeg = pytest.importorskip("simplejpeg")
    steps = np.random.default_rng(0).integers(-9, 10, (96, 96, 3))
    walk = np.cumsum(steps, axis=0) % 256
    for n, picture in enumerate((walk, np.zeros_like(walk), walk // 8)):
        image.fromarray(picture.astype(np.uint8)).save(tmp_path / f"{n}.jpg", optimize=n == 1)
    assert not profile(tmp_path).tables[0].faults
    whole, unnoticed = (tmp_path / "0.jpg").read_bytes(), 0
    for at in range(1_250, 2_650, 70):
        content = whole[:at] + bytes(30) + whole[at + 30 :]
        with suppress(ValueError):
            simplejpeg.decode_jpeg(content, strict=True)
            unnoticed += 1
        (tmp_path / "0.jpg").write_bytes(content)
        assert [fault.kind for fault in profile(tmp_path).tables[0].faults] == ["damaged"], at
    assert unnoticed


def test_the_other_line_ends_and_byte_order_marks_are_understood(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_bytes("a;b\r1;x\r2;é\r".encode("utf-8-sig"))
    table = profile(tmp_path / "d.csv").tables[0]
    assert ([c.name for c in table.columns], table.records, table.faults) == (["a", "b"], 2, ())


def test_a_pickled_array_is_not_unpickled(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "touched",))

    np.save(tmp_path / "d.npy", np.array([Evil()], dtype=object), allow_pickle=True)
    assert profile(tmp_path / "d.npy").tables[0].faults[0].kind == "broken"
    assert not (tmp_path / "touched").exists()


def test_an_archive_that_unpacks_to_too_much_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "LARGEST_UNPACKED", 1 << 20)
    np.savez_compressed(tmp_path / "d.npz", x=np.zeros(1 << 18))
    assert (tmp_path / "d.npz").stat().st_size < 1 << 14
    assert profile(tmp_path / "d.npz").tables[0].faults[0].kind == "too_large"


def test_links_that_go_round_and_names_with_odd_characters(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "round").symlink_to(folder)
    (folder / "gone.csv").symlink_to(folder / "nowhere")
    write_csv(folder / os.fsdecode(b"caf\xe9\n\x1b[31m.csv"), rows(30))
    found = profile(folder)
    assert len(found.tables) == 2
    json.dumps(found.to_dict())
    assert [f.kind for t in found.tables for f in t.faults] == ["unreadable"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "d.csv", rows(30))
    path.chmod(0)
    assert profile(path).tables[0].faults[0].kind == "unreadable"


def test_where_there_are_no_data(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError):
            profile(path)
    (tmp_path / "d.csv").write_bytes(b"")
    assert profile(tmp_path / "d.csv").tables[0].faults[0].kind == "empty_file"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": "epochzero.data-profile/1"}',
                                  '{"schema": "epochzero.data-profile/1", "tables": [{}]}'])  # fmt: skip
def test_a_file_that_is_no_profile(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InputError, match=r"p\.json"):
        read_profile(tmp_path / "p.json")


def test_what_needs_a_package_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    (tmp_path / "d.png").write_bytes(b"x")
    with pytest.raises(InputError, match=r"requires pillow: pip install 'epochzero\[data\]'"):
        profile(tmp_path / "d.png")
