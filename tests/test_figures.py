"""``docs/numbers.md`` and the README show what the result files contain, and nothing else."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = sorted((ROOT / "bench" / "results").glob("*.json"))


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    """``bench/figures.py``, which imports ``common`` from its own directory."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        spec = importlib.util.spec_from_file_location("figures", ROOT / "bench" / "figures.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "bench"))
    return module


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_result_file_records_how_it_was_measured(path: Path, figures: ModuleType) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["machine"]["cpu"]
    assert record["versions"]["python"]
    assert record["versions"]["epochzero_commit"]
    assert isinstance(record["seed"], int)
    paths = figures.measured_paths(path.stem)
    assert paths, f"list the packages of {path.stem} under [measured] in figures.toml"
    assert [name for name in paths if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_result_file_has_no_path_of_an_environment(path: Path) -> None:
    assert "/bin/python" not in path.read_text(encoding="utf-8")


def test_a_typed_figure_is_refused(figures: ModuleType) -> None:
    with pytest.raises(ValueError, match="figure typed into a row of watch: '16 of 36'"):
        figures.measured_figure("16 of 36", "watch")


def test_a_name_with_a_digit_is_no_figure(figures: ModuleType) -> None:
    shown = figures.measured_figure("ResNet-18, p95: {failed_to_run}", "watch")
    assert shown == "ResNet-18, p95: 0"


def test_a_figure_that_the_result_lacks_is_an_error(figures: ModuleType) -> None:
    with pytest.raises(KeyError, match="nowhere"):
        figures.measured_figure("{epochzero.nowhere}", "watch")


def test_a_repeated_row_is_written_for_the_sets_that_were_evaluated(
    figures: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(figures.TABLE, "sets", {"blind_2": "second", "blind_99": "latest"})
    row = {"each": "sets", "result": "raw_logs", "what": "the ORDINAL set", "strict": "{SET_open}"}
    plain = {"result": "raw_logs", "what": "another SET"}
    shown = [(row["what"], row.get("strict")) for row in figures.expanded([row, plain])]
    assert shown == [("the second set", "{blind_2_open}"), ("another SET", None)]


def test_keys_may_contain_dots(figures: ModuleType) -> None:
    assert figures.look_up({"p0.7": {"share": 1}, "p0": {"7": 2}}, "p0.7.share") == 1


def test_a_missed_target_is_marked(figures: ModuleType) -> None:
    row = {"result": "watch", "target": "{failed_to_run:.0%} >= 0.5"}
    assert figures.target(row) == "at least 50%, **missed**"
    part = {"result": "check_dry", "target": "{epochzero.all.strict} >= 1.0 of {epochzero.all.n}"}
    assert (
        figures.target(part)
        == f"at least 100% of {figures.look_up(figures.result('check_dry')['numbers'], 'epochzero.all.n')}, **missed**"
    )


def test_the_readme_refuses_a_figure_of_used_cases(
    figures: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {**figures.TABLE["front"][0], "evaluation": "used"}
    monkeypatch.setitem(figures.TABLE, "front", [row])
    with pytest.raises(ValueError, match="held-out figures only"):
        figures.front()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"sha256": "0"}, "the code has changed"),
        ({"paths": ["src/epochzero/logs"]}, "it measures other packages now"),
    ],
)
def test_a_result_is_stale_when_the_code_that_it_measures_has_changed(
    figures: ModuleType, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], reason: str
) -> None:
    paths = figures.measured_paths("watch")
    measured = {"paths": paths, "sha256": figures.content_digest(paths), **change}
    monkeypatch.setattr(figures, "result", lambda _name: {"measured": measured})
    assert figures.staleness("watch") == reason


@pytest.mark.parametrize(
    ("commit", "reason"),
    [
        ("0" * 40, "its commit is no longer in the history"),
        ("0" * 40 + "-modified", "measured with uncommitted changes"),
    ],
)
def test_a_result_without_a_hash_is_stale(
    figures: ModuleType, monkeypatch: pytest.MonkeyPatch, commit: str, reason: str
) -> None:
    record = {"versions": {"epochzero_commit": commit}}
    monkeypatch.setattr(figures, "result", lambda _name: record)
    assert figures.staleness("watch") == reason


def test_the_hash_covers_the_sources_and_nothing_else(figures: ModuleType, tmp_path: Path) -> None:
    def digest(name: str) -> object:
        # A new directory each time: digests of a directory are cached.
        return figures.content_digest(["package"], tmp_path / name)

    for name in ("first", "second", "compiled", "changed"):
        (tmp_path / name / "package").mkdir(parents=True)
        (tmp_path / name / "package" / "module.py").write_text("x = 1\n")
    (tmp_path / "compiled" / "package" / "__pycache__").mkdir()
    (tmp_path / "compiled" / "package" / "__pycache__" / "module.pyc").write_bytes(b"\0")
    (tmp_path / "changed" / "package" / "module.py").write_text("x = 2\n")
    assert digest("first") == digest("second") == digest("compiled")
    assert digest("first") != digest("changed")


def test_the_readme_fits_the_front_page() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_accuracies_from_before_the_reorganization_stand_next_to_the_present_ones(
    figures: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"result": "check_dry", "evaluation": "used", "cases": "{epochzero.check.n} jobs"}
    rows = [
        {**row, "what": "predicted", "strict": "{epochzero.check.predicted}"},
        {**row, "what": "the same, strict", "strict": "{epochzero.check.strict}"},
        {**row, "what": "measured only now", "strict": "{epochzero.check.seconds}"},
    ]
    monkeypatch.setitem(figures.TABLE, "section", [])
    monkeypatch.setitem(figures.TABLE, "before", {"row": rows})
    shown = list(figures.before_and_now())
    assert [row[1:3] for row in shown] == [
        ("predicted", "49 jobs"),
        ("predicted, strict", "49 jobs"),
    ]
    for *_, before, now, state in shown:
        equal = before.partition(" (")[0] == now.partition(" (")[0].rstrip(figures.STALE)
        assert state == ("equal" if equal else "differs")
