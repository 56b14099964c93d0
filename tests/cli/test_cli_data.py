"""``epochzero data``: from data to a profile, and from a profile to data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Command


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "train.csv"
    lines = [f"{n},{'cat' if n % 3 else 'dog'},{n % 7}.5" for n in range(300)]
    path.write_text("\n".join(["id,label,size", *lines, ""]))
    return path


@pytest.fixture
def known(run: Command, data: Path, tmp_path: Path) -> Path:
    assert run("data", "profile", str(data), "-o", str(tmp_path / "p.json")).code == 0
    return tmp_path / "p.json"


def test_a_profile_is_told_in_short_and_written_in_full(
    run: Command, data: Path, known: Path
) -> None:
    ran = run("data", "profile", str(data), "-o", str(known))
    assert "train.csv  csv, 300 records" in ran.out
    assert "cat 200, dog 100 (label)" in ran.out
    written = run("data", "profile", str(data)).out
    assert written == known.read_text()
    assert json.loads(written)["schema"] == "epochzero.data-profile/1"


def test_data_that_conform_are_exit_code_0(run: Command, data: Path, known: Path) -> None:
    ran = run("data", "validate", str(data), "--profile", str(known))
    assert (ran.code, ran.out.split()[0]) == (0, "CONFORMS")


def test_data_that_differ_are_exit_code_1_and_say_where(
    run: Command, data: Path, known: Path
) -> None:
    data.write_text(data.read_text().replace("\n150,dog", "\n150,d\x1bog"))
    ran = run("data", "validate", str(data), "--profile", str(known))
    assert ran.code == 1
    assert "train.csv:151  error  new_class  label" in ran.out
    assert "\x1b" not in ran.out
    ran = run("data", "validate", str(data), "--profile", str(known), "--format", "json")
    (finding,) = json.loads(ran.out)["findings"]
    assert (finding["kind"], finding["record"]) == ("new_class", 151)


def test_corner_cases_are_chosen_by_name(run: Command, known: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    ran = run(
        "data", "synthesize", str(known), "-n", "9", "-o", str(made),
        "--corner", "single-class,empty", "--seed", "3",
    )  # fmt: skip
    assert ran.code == 0
    assert {path.name for path in made.iterdir()} == {"regular", "single-class", "empty"}
    assert len((made / "regular/train.csv").read_text().splitlines()) == 10
    assert run("data", "synthesize", str(known), "-o", str(made)).code == 2


@pytest.mark.parametrize("options", [(), ("-o", "p.json")])
def test_what_is_wrong_with_the_data_is_told_when_they_are_profiled(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").write_text("")
    ran = run("data", "profile", "empty.csv", *options)
    assert ran.code == 0
    assert "1 x empty_file: empty.csv\n" in (ran.out if options else ran.err)


def test_a_sample(run: Command, data: Path, tmp_path: Path) -> None:
    ran = run("data", "sample", str(data), "-n", "20", "-o", str(tmp_path / "small"))
    assert ran.code == 0
    assert "train.csv: 20 of 300 records" in ran.out
    assert len((tmp_path / "small/train.csv").read_text().splitlines()) == 21


@pytest.mark.parametrize("arguments", [["profile", "missing"], ["validate", ".", "--profile", "x"],
                                       ["synthesize", "x"], ["sample", "missing", "-o", "y"]])  # fmt: skip
def test_what_cannot_be_used_is_exit_code_2(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("data", *arguments)
    assert ran.code == 2
    assert ran.err.startswith("epochzero: ")


def test_a_data_set_of_python_code_is_profiled_and_validated(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.py").write_text("data = [{'x': n, 'label': n % 2} for n in range(50)]\n")
    ran = run("data", "profile", "made:data", "-o", "p.json")
    assert (ran.code, "made:data  dataset, 50 records" in ran.out) == (0, True)
    ran = run("data", "validate", "made:data", "--profile", "p.json")
    assert (ran.code, ran.out.split()[0]) == (0, "CONFORMS")
    ran = run("data", "profile", "absent:data")
    assert (ran.code, "No module named 'absent'" in ran.err) == (2, True)
