"""What is read out of a report."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.errors import InputError
from epochzero.locate.query import PARTS, query_of
from epochzero.locate.report import Report, read_report

REPORT = """Loss is NaN with `LabelSmoother`

When I call `LabelSmoother(0.1)` from pkg.losses.smooth the loss is NaN, see src/pkg/train.py.

```python
from pkg.losses.smooth import LabelSmoother
loss = LabelSmoother(0.1)(x, y)
```

Traceback (most recent call last):
  File "train.py", line 12, in main
    loss.backward()
  File "/home/me/src/pkg/losses/smooth.py", line 30, in forward
    return x / total
ZeroDivisionError: float division by zero
"""


def test_a_report_is_taken_apart() -> None:
    query = query_of(read_report(REPORT))
    assert [(f.file.rsplit("/", 1)[-1], f.line, f.function) for f in query.frames] == [
        ("train.py", 12, "main"),
        ("smooth.py", 30, "forward"),
    ]
    assert query.paths == ("src/pkg/train.py",)
    assert "pkg.losses.smooth" in query.modules
    assert "LabelSmoother" in query.identifiers["summary"]
    assert "forward" in query.identifiers["all"]
    assert "smoother" in query.words["summary"]
    assert "from pkg.losses.smooth import" in query.texts["code"]
    assert "loss.backward()" in query.texts["traceback"]
    assert "loss.backward()" not in query.texts["prose"]
    assert query.texts["error"].strip() == "ZeroDivisionError: float division by zero"


def test_the_frames_of_a_notebook() -> None:
    text = (
        "~/lib/pkg/model.py in fit(self, x)\n---> 12 self.step(x)\n"
        "File /opt/pkg/data.py:40, in load(path)\n"
        "     39 with path.open() as stream:\n---> 40     read(stream)\n"
        "[/usr/lib/pkg/read.py](https://localhost:8080/#) in read(stream, limit)\n"
        "   1388     if limit:\n-> 1389         cut(stream)\n   1390     return stream\n"
        "/opt/pkg/warn.py:36: FutureWarning: old\n"
        "File ~/pkg/core.py:442, in _Base._compile(self, *args)\n"
        "c:\\users\\me\\pkg\\search.py in run(self)\n--> 722  self.each(grid)\n"
    )
    frames = query_of(Report("It fails", text)).frames
    assert [(f.file, f.line, f.function) for f in frames] == [
        ("~/lib/pkg/model.py", 12, "fit"),
        ("/opt/pkg/data.py", 40, "load"),
        ("/usr/lib/pkg/read.py", 1389, "read"),
        ("~/pkg/core.py", 442, "_compile"),
        ("c:/users/me/pkg/search.py", 722, "run"),
    ]


def test_the_frames_of_pytest() -> None:
    frames = query_of(
        Report(
            "test_split fails",
            "tests/test_split.py:21: in test_split\n    out = list(split(data))\n"
            "src/pkg/split.py:122: in flatmap\n    indices = self.sampler(target)\n"
            "E   ValueError: empty\nsrc/pkg/names.py:3: in <module>\n    from pkg import split\n",
        )
    ).frames
    assert [(f.file, f.line, f.function, f.code) for f in frames] == [
        ("tests/test_split.py", 21, "test_split", "out = list(split(data))"),
        ("src/pkg/split.py", 122, "flatmap", "indices = self.sampler(target)"),
        ("src/pkg/names.py", 3, "<module>", "from pkg import split"),
    ]


def test_a_tracker_s_json() -> None:
    report = read_report(
        '{"number": 7, "title": "Crash &amp; burn", "body": "line\\r\\nnext",'
        ' "createdAt": "2020-01-02T03:04:05Z", "closed_at": null}'
    )
    assert (report.id, report.title, report.text) == ("7", "Crash & burn", "line\nnext")
    assert report.opened == 1577934245.0


@pytest.mark.parametrize("text", ["", " \n\t", "###\n---\n", '{"title": "", "body": null}'])
def test_an_empty_report_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match="empty"):
        read_report(text)


@given(st.text(max_size=400), st.text(max_size=2000))
def test_any_text_can_be_asked(title: str, text: str) -> None:
    query = query_of(Report(title, text))
    assert set(query.texts) == set(PARTS)
    assert query.weights.shape == (len(query.terms), len(PARTS))
    assert list(query.hashes) == sorted(query.hashes)
    assert query.identifiers["summary"] <= query.identifiers["all"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"title": "Crash", "body": ', "invalid JSON at line 1"),
        ('[{"title": "Crash"}]', "a JSON list"),
        ('{"name": "Crash"}', "without a title or a body"),
        ("{" + '"a":{' * 100_000, "JSON"),
    ],
)
def test_json_that_is_no_report_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_report(text)


@pytest.mark.parametrize("text", ["[Bug] crash in loader", '{"lr": 1}\nis the config', "{x} fails"])
def test_prose_may_begin_with_a_bracket(text: str) -> None:
    assert read_report(text).title == text.splitlines()[0]
