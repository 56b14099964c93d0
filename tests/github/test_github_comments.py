"""Comments: short, linked, and with nothing of others' text as markup."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from epochzero.check import Finding, SourceLocation
from epochzero.github import Links, Review, UncheckedJob, ranking_comment, review_comment
from epochzero.locate import Extrinsic, Item, Ranking, Reason
from tests.forge import COMMIT, REPOSITORY

LINKS = Links(REPOSITORY, COMMIT)
SECRET = "hf_" + "a1" * 17
HOSTILE = st.text(max_size=60) | st.sampled_from(
    [
        "@team #1 <img src=x onerror=y> [a](javascript:b) https://evil.example www.evil.example",
        "a\n\n### b\n- [ ] c\n<!-- epochzero:check -->",
        "`x` ``y`` &#64;team &lt;b&gt; | \\",
        "::error::x\n::add-mask::y",
        f"password=hunter2x {SECRET}",
        "\u202egnp.exe \x1b[31m",
    ]
)


def finding(path: str = "train.py", text: str = "Wrong.", **changes: object) -> Finding:
    values: dict[str, object] = {
        "rule": "format-arguments",
        "severity": "error",
        "category": "type_mismatch",
        "phase": "training",
        "place": SourceLocation(path, 12, 3, "print(x)"),
        "message": text,
        "consequence": "TypeError: not enough",
        "fix": "Give more.",
    }
    return Finding(**(values | changes))  # type: ignore[arg-type]


def found(*findings: Finding, changed: str = "train.py") -> Review:
    return Review(("python train.py",), findings, frozenset({changed}), (), "cluster")


def test_a_finding_is_linked_at_the_commit() -> None:
    body = review_comment(
        found(finding("dir/my train.py", via=(SourceLocation("run.py", 3),))), LINKS
    )
    assert body.startswith("### EpochZero: 1 error, 0 warnings predicted")
    base = f"https://github.com/{REPOSITORY}/blob/{COMMIT}"
    assert f"[`dir/my train.py:12`]({base}/dir/my%20train.py#L12)" in body
    assert f"  - Via: [`run.py:3`]({base}/run.py#L3)" in body
    assert "Static analysis of `python train.py` on cluster, at 3f1c9a04be" in body


def test_what_the_pull_request_does_not_change_is_told_apart() -> None:
    body = review_comment(found(finding(), finding("other.py")), LINKS)
    own, others = body.split("**Findings in files that this pull request does not change**")
    assert ("train.py:12" in own, "other.py:12" in others) == (True, True)


def test_places_that_are_no_files_are_not_linked() -> None:
    assert "`<command>`" in review_comment(
        found(finding("<command>", place=SourceLocation("<command>"))), LINKS
    )


def test_nothing_found_and_nothing_checked() -> None:
    assert review_comment(found(), LINKS).startswith("### EpochZero: all clear")
    nothing = Review((), (), frozenset(), (), "")
    assert "changes no launch script" in review_comment(nothing, LINKS)
    refused = Review((), (), frozenset(), (UncheckedJob("python a.py", "does not exist"),), "")
    body = review_comment(refused, LINKS)
    assert body.startswith("### EpochZero: 1 job could not be checked")
    assert "- not checked: `python a.py`: does not exist" in body


def test_a_comment_is_never_too_long_for_github() -> None:
    many = [finding(text=f"{n} " + "@#<" * 9000) for n in range(500)]
    assert "and 480 more" in review_comment(
        found(*(finding(text=str(n)) for n in range(500))), LINKS
    )
    assert 10_000 < len(review_comment(found(*many), LINKS)) < 65_000
    long = finding("é" * 9000, via=(SourceLocation("é" * 9000, 1),) * 500, text="@" * 9000)
    assert 1_000 < len(review_comment(found(*[long] * 20), LINKS)) < 65_000
    items = (Item("é" * 300, 1.0, "@" * 900, reasons=(Reason("words", "@" * 900),) * 3),) * 20
    assert len(ranking_comment(Ranking(COMMIT, "file", "learned", 9, items), LINKS)) < 65_000


def test_places_of_a_bug_are_linked() -> None:
    item = Item("src/load er.py", 0.5, "Reader.read", 3, 9, (Reason("frame", "ends here"),))
    ranking = Ranking(COMMIT, "function", "learned", 2, (item,), "", Extrinsic(0.8, "library", "x"))
    body = ranking_comment(ranking, LINKS)
    assert f"/blob/{COMMIT}/src/load%20er.py#L3-L9)" in body
    assert "`Reader.read`\n   - ends here" in body
    assert "outside this code (80%); suspect: library x" in body
    unsure = Ranking(COMMIT, "file", "learned", 2, (item,), "", Extrinsic(0.79, "library", "x"))
    assert "outside this code" not in ranking_comment(unsure, LINKS)
    none = Ranking(COMMIT, "file", "learned", 2, ())
    assert "no code matches this report" in ranking_comment(none, LINKS)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_nothing_of_others_is_markup(path: str, text: str, code: str) -> None:
    one = finding(message=text, consequence=text, fix=text, place=SourceLocation(path, 1, 1, code))
    review = Review((code or "x",), (one,), frozenset(), (UncheckedJob(text or "x", text),), text)
    item = Item(path or "x", 1.0, code, 1, 1, (Reason("words", text),))
    ranking = Ranking(COMMIT, "file", "learned", 1, (item,), "", Extrinsic(0.9, "library", text))
    for body in (review_comment(review, LINKS), ranking_comment(ranking, LINKS)):
        text_only = re.sub(r"(?<=\]\()https://github\.com/[!-'*-~]*(?=\))", "", body)
        spans = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text_only)
        assert not re.search(
            r"@\w|(?<!&)#\d|<(?!/?sub>)|(?<!\\)\]\(javascript|://evil|www\.", spans
        )
        assert not re.search(r"(?m)^(::|### [^E]|- \[)", body)
        assert "password=hunter2x" not in body
        assert SECRET not in text_only
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", body)
