"""BLIA: its four parts and how they come together."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.code import History, Repository
from epochzero.locate.corpus import Corpus
from epochzero.locate.query import query_of
from epochzero.locate.report import Report
from epochzero.locate.techniques.blia import BLIA, recent_fixes, stack_trace, structured_vsm

MakeCorpus = Callable[..., Corpus]

DAY = 24 * 3600
START = 1_600_000_000

PACKAGE = {
    "src/pkg/__init__.py": "",
    "src/pkg/fit.py": "from pkg import step, data\n",
    "src/pkg/step.py": "loss = 1\n",
    "src/pkg/data.py": "batch = 1\n",
    "examples/train.py": "from pkg import fit\n",
}


def trace(*files: str) -> Report:
    frames = "\n".join(f'  File "{file}", line 1, in f\n    g()' for file in files)
    return Report("fails", f"Traceback (most recent call last):\n{frames}\nValueError: no")


def boosts(corpus_of: MakeCorpus, report: Report) -> dict[str, float]:
    corpus = corpus_of(PACKAGE)
    found = stack_trace(query_of(report), corpus)
    return {
        path: pytest.approx(value)
        for path, value in zip(corpus.paths, found.tolist(), strict=True)
        if value
    }


# -- Stack traces ------------------------------------------------------------------------------


def test_a_file_counts_by_the_rank_of_its_frame_from_the_innermost(corpus_of: MakeCorpus) -> None:
    site = "/usr/lib/python3/site-packages"
    report = trace(f"{site}/pkg/fit.py", f"{site}/pkg/step.py", f"{site}/torch/nn.py")
    # What fit.py imports is step.py, which has a rank of its own, and data.py.
    expected = {"src/pkg/step.py": 1 / 2, "src/pkg/fit.py": 1 / 3, "src/pkg/data.py": 0.1}
    assert boosts(corpus_of, report) == expected


def test_the_best_rank_of_a_file_counts(corpus_of: MakeCorpus) -> None:
    report = trace("pkg/step.py", "pkg/data.py", "pkg/step.py")
    assert boosts(corpus_of, report) == {"src/pkg/step.py": 1, "src/pkg/data.py": 1 / 2}


def test_beyond_rank_10_all_frames_count_alike(corpus_of: MakeCorpus) -> None:
    report = trace("pkg/data.py", "pkg/step.py", *["/lib/other.py"] * 9)
    assert boosts(corpus_of, report) == {"src/pkg/step.py": 0.1, "src/pkg/data.py": 0.1}


@pytest.mark.parametrize(
    "file", ["/lib/torch/step.py", "step.py", "<ipython-input-3-0a>", "/home/me/train.py", "/"]
)
def test_a_file_of_another_package_is_none_of_ours(corpus_of: MakeCorpus, file: str) -> None:
    assert boosts(corpus_of, trace(file)) == {}


def test_a_script_is_known_by_its_folder(corpus_of: MakeCorpus) -> None:
    assert boosts(corpus_of, trace("C:\\work\\examples\\train.py")) == {
        "examples/train.py": 1,
        "src/pkg/fit.py": 0.1,
    }


# -- Recent fixes ------------------------------------------------------------------------------


def commit(folder: Path, message: str, day: float, *moved: str, **files: str) -> None:
    """A commit so many days after the start."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    date = f"{int(START + day * DAY)} +0000"
    mine = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_DATE": date,
    }

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        subprocess.run(
            ["git", *who, *arguments], cwd=folder, env=clean | mine, check=True, capture_output=True
        )

    if not (folder / ".git").exists():
        git("init", "-q")
    if moved:
        git("mv", *moved)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    git("add", "-A")
    git("commit", "-q", "-m", message)


@pytest.fixture
def history(tmp_path: Path) -> History:
    commit(tmp_path, "Begin", 0, a="a = 1\n", b="b = 1\n" * 9, c="c = 1\n")
    commit(tmp_path, "Fix a crash in a and b", 70, a="a = 2\n", b="b = 1\n" * 8)
    commit(tmp_path, "Add a thing to c", 120, c="c = 2\n")
    commit(tmp_path, "Move b", 150, "b.py", "moved.py")
    commit(tmp_path, "Fix a again", 190, a="a = 3\n")
    commit(tmp_path, "Fix c too late", 230, c="c = 3\n")
    return History(Repository(tmp_path))


NUMBER = {"a.py": 0, "moved.py": 1, "c.py": 2}


def of_age(days: float) -> float:
    """Youm et al.: 1 / (1 + exp(12 * (1 - (k - d) / k))) with k = 120."""
    return 1 / (1 + math.exp(12 * (1 - (120 - days) / 120)))


def test_fixes_before_the_report_count_the_more_the_younger_they_are(history: History) -> None:
    found = recent_fixes(history, NUMBER, START + 190 * DAY)
    assert found == pytest.approx([of_age(0) + of_age(120), of_age(120), 0], rel=1e-5)
    assert of_age(0) == 0.5


def test_older_fixes_and_those_after_the_report_do_not_count(history: History) -> None:
    found = recent_fixes(history, NUMBER, START + 191 * DAY)
    assert found == pytest.approx([of_age(1), 0, 0], rel=1e-5)


def test_a_report_without_a_date_is_made_at_the_end_of_the_history(history: History) -> None:
    dated = recent_fixes(history, NUMBER, START + 230 * DAY)
    assert recent_fixes(history, NUMBER, None).tolist() == dated.tolist()
    assert dated[2] == 0.5


# -- Together ----------------------------------------------------------------------------------

WORDS = {"a.py": "tensor = 1\n", "moved.py": "shape = 1\n", "c.py": "epoch = 1\n"}


def test_recent_fixes_lift_what_is_suspicious_already_and_nothing_else(
    corpus_of: MakeCorpus, history: History
) -> None:
    corpus = corpus_of(WORDS, history)
    query = query_of(Report("shape", opened=START + 190 * DAY))
    scores = BLIA().scores(query, corpus)
    assert scores == pytest.approx([0, 0.8 * 0.7 + 0.2 * of_age(120), 0])
    alone = BLIA().scores(query, corpus_of(WORDS))
    assert alone == pytest.approx([0, 0.8 * 0.7, 0])


def test_a_frame_adds_its_rank_to_the_words(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(PACKAGE)
    scores = BLIA().scores(query_of(trace("/x/pkg/data.py")), corpus)
    # None of its words is in the file: what it has is its frame's rank, which is not scaled.
    assert scores[corpus.number["src/pkg/data.py"]] == pytest.approx(0.8)
    assert scores.argmax() == corpus.number["src/pkg/data.py"]


def test_comments_count_for_half_of_names(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of({"code.py": "tensor\n", "comment.py": "# tensor\n", "c.py": "epoch\n"})
    code, comment, other = structured_vsm(query_of(Report("tensor")), corpus)
    assert comment == pytest.approx(code / 2)
    assert other == 0
