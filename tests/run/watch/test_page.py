"""The page, its curves and what is exported."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from epochzero.cli.watch import show
from epochzero.errors import InputError
from epochzero.run.watch.export import curves
from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.run.watch.model import SourceLine, TrainingFinding, WatchResult
from epochzero.run.watch.page import page
from epochzero.run.watch.plot import bars, chart, number, spark
from tests.waiting import PATIENCE_S

HOSTILE = '<script>alert("x")</script>&'
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def records() -> list[dict[str, Any]]:
    """A training of forty iterations, some of whose numbers are none."""
    values = {"rms": 0.1, "largest": 0.2, "zeros": 0.0, "nonfinite": 0.0}
    output = {"mean": 0.0, "std": 1.0, "constant": 0.25, "low": 0.0, "high": 0.5}
    told: list[dict[str, Any]] = [
        {"kind": "begun", "schema": "epochzero.watch/1", "pid": 1},
        {
            "kind": "model", "number": 0, "class": "Net",
            "layers": [{
                "path": HOSTILE, "class": "Linear", "leaf": True, "settings": {}, "called": True,
                "parameters": ["weight"], "place": ["train.py", 3, "self.a = Linear(2, 2)"],
            }],
            "parameters": [{
                "name": f"{HOSTILE}.weight", "shape": [2, 2], "trainable": True, "held": True, **values, "mean": 0.0, "std": 0.1,
            }],
        },
    ]  # fmt: skip
    for step in range(40):
        loss: Any = "nan" if step == 20 else 1.0 / (step + 1)
        told.append({"kind": "losses", "losses": [[step, "train.py:7", loss]]})
        parameters = {
            f"0/{HOSTILE}.weight": {"weight": values, "update": values, "gradient": values}
        }
        told.append({
            "kind": "iteration", "iteration": step, "rates": [0.1], "parameters": parameters,
            "layers": {f"0/{HOSTILE}": output}, "order": [[f"0/{HOSTILE}", "Linear"]],
            "target": {"classes": {"0": 3, "1": 5}}, "accuracy": 0.5,
            "values": {HOSTILE: {"mean": 0.0, "p5": -1.0, "p50": 0.0, "p95": 1.0}},
        })  # fmt: skip
    told.append({"kind": "evaluation", "iteration": 20, "loss": 0.5, "accuracy": 0.7})
    told.append({"kind": "evaluation", "iteration": 40, "loss": 0.4, "accuracy": 0.8})
    told.append({"kind": "ended", "iterations": 40})
    return told


@pytest.fixture
def history() -> TrainingHistory:
    return read_records(records())


def watched(path: Path) -> WatchResult:
    path.write_text("import torch\n" + "\n".join(f"line_{n} = {n}" for n in range(2, 9)) + "\n")
    root = TrainingFinding(
        "learning_rate_too_high", 3, HOSTILE, HOSTILE, SourceLine(str(path), 5, "line_5 = 5"), 0.9,
        f"Try 0.01 {HOSTILE}", {"lr": 0.1, "word": HOSTILE}, "loss", ("loss_rising",),
    )  # fmt: skip
    symptom = TrainingFinding(
        "loss_rising", 4, "It rises.", place=SourceLine("gone.py", 2, HOSTILE)
    )
    return WatchResult(40, root, (symptom,), (TrainingFinding("dead_units", 5, "They are dead."),))


class Elements(HTMLParser):
    """The elements of a page; fails for one that is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_needs_no_network_and_obeys_nobody(
    history: TrainingHistory, tmp_path: Path
) -> None:
    text = page(history, watched(tmp_path / "train.py"), HOSTILE)
    elements = Elements()
    elements.feed(text)
    assert not elements.open
    assert "<script" not in text
    assert not re.search(r"https?://|url\(|@import|\ssrc=|\shref=", text)
    assert all(attributes.get("aria-label") for tag, attributes in elements.seen if tag == "svg")
    assert not re.search(r'[ "MHVL](nan|inf)', text.partition("<main>")[2].replace(", 1 not", ""))


def test_the_verdict_stands_first_with_its_source(history: TrainingHistory, tmp_path: Path) -> None:
    text = page(history, watched(tmp_path / "train.py"))
    order = ["Learning rate too high", "Try 0.01", "Consequences", "Also found", "Curves"]
    found = [text.find(word) for word in order]
    assert found == sorted(found)
    assert -1 not in found
    assert "<b>    5  line_5 = 5</b>" in text
    assert "line_3 = 3" in text


def test_a_line_that_has_changed_is_shown_as_it_was(
    history: TrainingHistory, tmp_path: Path
) -> None:
    told = watched(tmp_path / "train.py")
    (tmp_path / "train.py").write_text("other\n" * 9)
    text = page(history, told)
    assert "<b>    5  line_5 = 5</b>" in text


def test_a_training_without_fault_and_one_without_anything(history: TrainingHistory) -> None:
    assert "No faults found" in page(history, WatchResult(40))
    assert "No training was watched" in page(read_records([]), WatchResult(0))


def test_a_chart_keeps_its_peaks_and_breaks_where_nothing_is() -> None:
    steps = np.arange(10_000.0)
    values = np.sin(steps)
    values[5000] = 50.0
    values[7000:8000] = math.nan
    drawn = chart({"loss": np.column_stack([steps, values])}, "Loss")
    assert len(drawn) < 20_000
    assert drawn.count("M") > 1
    assert "1000 not finite" in drawn
    top = min(float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", drawn))
    assert top == pytest.approx(12.0)


def test_a_chart_of_many_decades_is_logarithmic() -> None:
    series = np.column_stack([np.arange(9.0), 10.0 ** -np.arange(9.0)])
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", chart({"x": series}, "X"))]
    assert np.ptp(np.diff(heights[-9:])) < 0.2
    assert "from 1 to 1.00e-08" in spark(series, "X")


def test_nothing_to_draw_draws_nothing() -> None:
    assert chart({"x": np.empty((0, 2))}, "X") == ""
    assert spark(np.array([[0.0, math.nan]]), "X") == ""
    assert bars({}, "X") == ""
    assert "<circle" in spark(np.array([[0.0, 1.0]]), "X")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.01234, "0.0123"), (12345, "12,345"), (1e9, "1.00e+09"), (math.inf, "inf")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_curves_have_names_and_points(history: TrainingHistory) -> None:
    found = {name: len(series) for name, series in curves(history)}
    assert found["loss/training"] == 40
    assert found["loss/evaluation"] == 2
    assert found["learning rate"] == 40
    assert found[f"gradient/{HOSTILE}.weight"] == 40
    assert found[f"values/{HOSTILE} p50"] == 40


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("loss", 40), ("rate", 40), ("accuracy", 40), ("evaluation/loss", 2),
        (f"layers/{HOSTILE.replace('/', '')}/std", 0), ("layers", 0), ("any/thing", 0), ("", 0),
        ("parameters/a/b", 0),
    ],
)  # fmt: skip
def test_a_finding_names_its_series(history: TrainingHistory, name: str, count: int) -> None:
    assert len(history.series(name)) == count


def test_the_command_says_it_and_writes_the_page(tmp_path: Path) -> None:
    file = tmp_path / "watch.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records()))
    command = CliRunner()
    options = ["--html", str(tmp_path / "page.html"), "--format", "json"]
    done = command.invoke(show, [str(file), *options], catch_exceptions=False)
    assert json.loads(done.stdout)["iterations"] == 40
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    (tmp_path / "none.jsonl").write_text("")
    for bad in ("none.jsonl", "not_there.jsonl"):
        with pytest.raises(InputError, match=bad):
            command.invoke(show, [str(tmp_path / bad)], catch_exceptions=False)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_browser_shows_it(history: TrainingHistory, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page(history, watched(tmp_path / "train.py")))
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", str(tmp_path / "page.html"),
        ],
        capture_output=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert b"CONSOLE" not in done.stderr
    assert b"<script" not in done.stdout
    assert done.stdout.count(b"<svg") == page(
        history, watched(tmp_path / "train.py")
    ).count("<svg")  # fmt: skip
