"""Labelling by hand: questions, storage, access, agreement."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.errors import InputError
from epochzero.reports.statistics import fleiss_kappa
from epochzero.study import read_file
from epochzero.study.labelling import (
    LabelFolder,
    Session,
    compare,
    disagreements,
    exported,
    load_scheme,
    read_items,
)
from epochzero.study.labelling.items import visible
from epochzero.study.labelling.scheme import KEYS

KEY = ("general_code_error", "key_not_found", "programming_error", "training", "fails_again")
PATH = ("execution_environment", "path_not_found", "environment", "preprocessing", "fails_again")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "f.jsonl"
    records: list[dict[str, Any]] = [
        {
            "id": f"job-{n}",
            "title": f"Job {n}",
            "log": f"KeyError: {n}",
            "label": {"category": "timeout"},
        }
        for n in range(4)
    ]
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    return file


def label(source: Path, name: str, answers: list[tuple[str, ...] | None]) -> None:
    """Answers for each record in turn; None skips it."""
    folder = LabelFolder(source)
    scheme = folder.scheme(None)
    with folder.journal(name, scheme) as journal:
        session = Session(read_items(source).items, scheme, journal)
        for one in answers:
            if one is None:
                session.skip()
            for word in one or ():
                assert session.answer(word), word


# What is asked


@pytest.mark.parametrize("name", ["failures", "bugs"])
def test_each_question_fits_the_keys_and_has_definitions(name: str) -> None:
    scheme = load_scheme(name)
    for question in scheme.questions:
        assert all(one.definition for one in question.choices)
    asked = [load_scheme(name).walk({})[1]]
    assert asked[0] is not None


def test_every_category_is_in_reach_in_two_answers() -> None:
    from epochzero import taxonomy

    scheme = load_scheme("failures")
    dimension, category = scheme.questions[:2]
    reached = set()
    for one in dimension.choices:
        offered = category.choices_after({"dimension": one.name})
        assert len(offered) <= len(KEYS)
        reached |= {choice.name for choice in offered}
    assert reached == set(taxonomy.categories())


def test_an_only_choice_is_not_asked_for() -> None:
    scheme = load_scheme("failures")
    answers, question = scheme.walk({"dimension": "no_failure"})
    assert answers == {"dimension": "no_failure", "category": "not_a_failure"}
    assert question is None


def test_a_scheme_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'title = "Mine"\n[[questions]]\nname = "good"\ntitle = "Good?"\n'
        + "".join(
            f'[[questions.choices]]\nname = "{n}"\ntitle = "{n}"\ndefinition = "d"\n' for n in "ab"
        )
    )
    assert [one.name for one in load_scheme(str(file)).questions[0].choices] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("title = ", "invalid TOML"),
        ("title = 'x'", "'questions' is missing"),
        ("title = 'x'\nquestions = []", "no questions"),
        ("title = 'x'\nquestions = 3", "not a label scheme"),
        ("title = 'x'\n[[questions]]\nname = 'a'\ntitle = 'A'\nvocabulary = 'words'", "unknown vocabulary"),
        ("title = 'x'\n[[questions]]\nname = 'a'\ntitle = 'A'\nvocabulary = 'categories'", "more than 22"),
        ("title = 'x'\n[[questions]]\nname = 'a'\ntitle = 'A'", "fewer than 2"),
        ("title = 'x'\n[[questions]]\nname = 'a'\ntitle = 'A'\nwithin = 'b'\nvocabulary = 'phases'", "not an earlier"),
    ],
)  # fmt: skip
def test_a_wrong_scheme_is_refused_by_name(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=rf"own\.toml.*{told}"):
        load_scheme(str(file))


# What is read


def test_records_that_cannot_be_labelled_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text(
        '{"id": 1, "log": "x"}\n{"id": 1, "log": "y"}\n[]\nno\n{"id": 2}\n{"summary": "z"}\n'
    )
    found = read_items(file)
    assert [one.id for one in found.items] == ["1", "line 6"]
    assert sorted(found.left_out.values()) == [1, 1, 1, 1]
    (tmp_path / "none.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="no records to label"):
        read_items(tmp_path / "none.jsonl")


def test_a_folder_of_logs(tmp_path: Path) -> None:
    (tmp_path / "logs" / "job-1").mkdir(parents=True)
    (tmp_path / "logs" / "a.log").write_text("alone")
    for rank in (0, 1):
        (tmp_path / "logs" / "job-1" / f"rank{rank}.log").write_text(f"of {rank}")
    found = {one.id: one.text for one in read_items(tmp_path / "logs").items}
    assert found["a.log"] == "alone"
    assert found["job-1"].index("of 0") < found["job-1"].index("of 1")
    assert LabelFolder(tmp_path / "logs").path == tmp_path / "logs.labels"


@given(st.text())
def test_nothing_of_a_text_is_obeyed(text: str) -> None:
    shown = visible(text)
    assert all(one == "\n" or one >= " " for one in shown)
    assert not set(shown) & set("\x7f\x9b\u202e\u200b")
    shown.encode("utf-8")


# What is kept


def test_every_answer_is_kept_at_once_and_the_next_session_goes_on(source: Path) -> None:
    label(source, "alice", [KEY, ("data",)])
    lines = (source.parent / "f.jsonl.labels" / "alice.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert json.loads(lines[-1]).keys() == {"time", "did", "id", "question", "value", "version"}
    folder = LabelFolder(source)
    with folder.journal("alice", folder.scheme(None)) as journal:
        view = Session(read_items(source).items, folder.scheme(None), journal).view()
    assert view.item is not None
    assert view.item.id == "job-1"
    assert view.question is not None
    assert view.question.name == "category"
    assert (view.labelled, view.total) == (1, 4)


def test_undo_goes_back_over_sessions_records_and_skips(source: Path) -> None:
    label(source, "alice", [KEY, None])
    folder = LabelFolder(source)
    with folder.journal("alice", folder.scheme(None)) as journal:
        session = Session(read_items(source).items, folder.scheme(None), journal)
        places = []
        while session.undo():
            view = session.view()
            assert view.item is not None
            assert view.question is not None
            places.append((view.item.id, view.question.name))
        assert not session.undo()
    assert places[0] == ("job-1", "dimension")
    assert places[1:] == [
        ("job-0", one) for one in ("retry", "phase", "root_cause", "category", "dimension")
    ]
    label(source, "alice", [PATH])
    with folder.journal("alice", folder.scheme(None)) as journal:
        assert journal.labels.answers["job-0"]["category"] == "path_not_found"


def test_what_is_skipped_comes_last(source: Path) -> None:
    label(source, "alice", [None, KEY, KEY, KEY, PATH])
    assert (
        LabelFolder(source).annotators()["alice"].answers["job-0"]["category"] == "path_not_found"
    )


@given(st.lists(st.sampled_from(["skip", "undo", "note", *KEYS[:6]]), max_size=40))
def test_any_keys_come_to_the_same_after_a_crash(
    tmp_path_factory: pytest.TempPathFactory, keys: list[str]
) -> None:
    source = tmp_path_factory.mktemp("keys") / "f.jsonl"
    source.write_text("".join(f'{{"id": "{n}", "log": "x"}}\n' for n in range(3)))
    folder, items = LabelFolder(source), read_items(source).items
    scheme = folder.scheme(None)
    with folder.journal("alice", scheme) as journal:
        session = Session(items, scheme, journal)
        for key in keys:
            choices = session.view().choices
            if key == "note":
                session.note("well")
            elif key in ("skip", "undo"):
                getattr(session, key)()
            elif key in choices:
                session.answer(choices[key].name)
        before = session.view()
    with folder.journal("alice", scheme) as journal:
        assert Session(items, scheme, journal).view() == before


def test_half_a_line_of_a_crash_costs_that_line_only(source: Path) -> None:
    label(source, "alice", [KEY])
    file = source.parent / "f.jsonl.labels" / "alice.jsonl"
    with file.open("a") as open_file:
        open_file.write('{"did": "answer", "id": "job-')
    label(source, "alice", [PATH])
    found = LabelFolder(source).annotators()["alice"]
    assert found.unreadable == 1
    assert found.answers["job-1"]["category"] == "path_not_found"


def test_a_second_session_of_the_same_name_is_refused(source: Path) -> None:
    folder = LabelFolder(source)
    scheme = folder.scheme(None)
    with folder.journal("alice", scheme), pytest.raises(InputError, match="another session"):
        folder.journal("alice", scheme)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "a b", "x" * 65])
def test_a_name_is_no_path(source: Path, name: str) -> None:
    folder = LabelFolder(source)
    with pytest.raises(InputError, match="not a valid annotator name"):
        folder.journal(name, folder.scheme(None))


def test_other_questions_than_at_first_are_refused(source: Path) -> None:
    label(source, "alice", [KEY])
    assert (
        LabelFolder(source).scheme("failures").version == LabelFolder(source).scheme(None).version
    )
    with pytest.raises(InputError, match="started with other questions"):
        LabelFolder(source).scheme("bugs")


# Who sees what


def test_nobody_reads_the_labels_of_others(source: Path) -> None:
    label(source, "bob", [KEY, KEY])
    opened: list[str] = []
    watching = [True]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching[0] and event == "open":
            opened.append(str(arguments[0]))

    sys.addaudithook(hook)
    label(source, "alice", [KEY, PATH])
    watching[0] = False
    assert any(path.endswith("alice.jsonl") for path in opened)
    assert not any("bob" in path for path in opened)


def test_labels_that_records_carry_are_not_shown(source: Path) -> None:
    item = read_items(source).items[0]
    assert "timeout" not in item.text + item.title


def test_secrets_are_not_shown_and_an_export_leaves_the_fields_as_they_are(tmp_path: Path) -> None:
    source = tmp_path / "f.jsonl"
    record = {
        "id": "1",
        "title": "login token=abc123def456",
        "log": "password=hunter2x\nKeyError: 1",
    }
    source.write_text(json.dumps(record))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text("export HF=hf_" + "a" * 30 + "\nKeyError: 1")
    label(source, "alice", [KEY])
    folder = LabelFolder(source)
    scheme, items = folder.scheme(None), read_items(source).items
    shown = items[0].text + items[0].title + read_items(tmp_path / "logs").items[0].text
    assert "KeyError: 1" in shown
    assert shown.count("[redacted]") >= 3
    assert not any(secret in shown for secret in ("abc123def456", "hunter2x", "aaaaaaaaaa"))
    assert next(exported(scheme, items, folder.annotators(), {}))["log"] == record["log"]


# How far people agree


def test_agreement_disagreements_adjudication_and_export(source: Path) -> None:
    label(source, "alice", [KEY, KEY, PATH, PATH])
    label(source, "bob", [KEY, PATH, PATH, ("no_failure",)])
    folder, items = LabelFolder(source), read_items(source).items
    scheme = folder.scheme(None)
    found = {one.question: one for one in compare(scheme, items, folder.annotators())}
    category = found["category"]
    assert (category.agreed, category.records) == (2, 4)
    assert category.pairs["alice", "bob"].kappa.value == pytest.approx(0.2)
    assert category.fleiss is None
    assert category.confused == (
        ("path_not_found", "key_not_found", 1),
        ("path_not_found", "not_a_failure", 1),
    )
    assert {one.name: one.f1 for one in category.labels} == {
        "path_not_found": 0.5, "key_not_found": pytest.approx(2 / 3), "not_a_failure": 0.0,
    }  # fmt: skip
    assert found["phase"].records == 3

    differing = disagreements(scheme, items, folder.annotators())
    assert [one.item.id for one in differing] == ["job-1", "job-3"]
    assert differing[0].unanimous == {"retry": "fails_again"}
    before = list(exported(scheme, items, folder.annotators(), folder.adjudicated()))
    assert before[1]["unresolved"] == ["dimension", "category", "root_cause", "phase"]
    with folder.journal("carol", scheme, adjudicating=True) as journal:
        records = {one.item.id: one for one in differing}
        session = Session([one.item for one in differing], scheme, journal, records)
        assert session.view().chosen_by == {
            "general_code_error": ["alice"],
            "execution_environment": ["bob"],
        }
        for word in PATH[:4]:
            assert session.answer(word)
        assert session.answer("no_failure")
        assert session.view().item is None
    after = list(exported(scheme, items, folder.annotators(), folder.adjudicated()))
    assert [one["label_from"] for one in after] == [
        "unanimous",
        "adjudicated",
        "unanimous",
        "adjudicated",
    ]
    assert after[1]["label"]["category"] == "path_not_found"
    assert after[1]["label_certainty"]["category"] == 0.5
    assert set(folder.annotators()) == {"alice", "bob"}

    out = source.with_name("out.jsonl")
    out.write_text("".join(json.dumps(one) + "\n" for one in after))
    corpus = read_file(out)
    assert list(corpus.texts("label_category")) == [
        "key_not_found", "path_not_found", "path_not_found", "not_a_failure",
    ]  # fmt: skip


def test_three_annotators_have_a_majority(source: Path) -> None:
    for name, first in (("alice", KEY), ("bob", KEY), ("carol", PATH)):
        label(source, name, [first, PATH])
    folder, items = LabelFolder(source), read_items(source).items
    scheme = folder.scheme(None)
    category = compare(scheme, items, folder.annotators())[1]
    assert len(category.pairs) == 3
    assert category.fleiss_records == 2
    record = next(iter(exported(scheme, items, folder.annotators(), {})))
    assert record["label"]["category"] == "key_not_found"
    assert record["label_certainty"]["category"] == pytest.approx(0.6667)
    assert record["label_from"] == "majority"


def test_bugs_are_exported_as_the_studies_have_them(tmp_path: Path) -> None:
    file = tmp_path / "bugs.jsonl"
    file.write_text('{"id": "a", "summary": "s", "description": "d"}\n')
    folder = LabelFolder(file)
    scheme = folder.scheme("bugs")
    items = read_items(file).items
    with folder.journal("alice", scheme) as journal:
        session = Session(items, scheme, journal)
        assert session.answer("no")
        assert session.answer("extrinsic")
    record = next(iter(exported(scheme, items, folder.annotators(), {})))
    assert record["label"] == {"deep_learning": False, "type": "ndl", "extrinsic": True}


def test_fleiss_kappa_of_the_published_example() -> None:
    """Fleiss 1971 in the form of his textbook example: 10 subjects, 14 raters, 5 classes."""
    counts = np.array([
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ])  # fmt: skip
    assert fleiss_kappa(counts) == pytest.approx(0.210, abs=5e-4)
    assert fleiss_kappa(np.array([[3, 0], [3, 0]])) is None
    assert fleiss_kappa(np.array([[3, 0], [1, 1]])) is None
