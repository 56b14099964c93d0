"""Loading, checking and matching signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from epochzero.diagnose import Catalog, Diagnoser, Signature, load_folder
from epochzero.diagnose.catalog import SignatureExample
from epochzero.diagnose.check import check_folder, check_signature
from epochzero.errors import CatalogError
from epochzero.logs.source import Log

if TYPE_CHECKING:
    from pathlib import Path
from typing import Any

GOOD = """\
title = "Quota of the lab's share"
meaning = "The share is full."
pattern = 'share (?P<share>\\w+) is full(?: by (?P<bytes>\\d+) bytes)?'
anchors = ["is full"]
category = "storage_full"
root_cause = "environment"
retry = "fails_again"
retry_reason = "Nothing frees the share."
fixes = ["Delete {bytes} bytes on {share}.", "Delete files on {share}."]
counter_examples = ["share x is half full"]

[[examples]]
log = "ERROR: share scratch is full by 12 bytes"
fields = { share = "scratch", bytes = "12" }
"""


def load(folder: Path, text: str, name: str = "lab/share-full.toml") -> list[Signature]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return list(load_folder(folder))


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_a_good_file(tmp_path: Path) -> None:
    (signature,) = load(tmp_path, GOOD)
    assert signature.name == "lab/share-full"
    assert signature.role == "cause"
    assert signature.priority == 50
    assert signature.examples[0].fields == {"share": "scratch", "bytes": "12"}
    assert list(check_signature(signature)) == []


BAD = {
    "title": (changed('title = "Quota of the lab\'s share"', ""), "title"),
    "empty title": (changed("Quota of the lab's share", ""), "title"),
    "title no text": (changed('title = "Quota of the lab\'s share"', "title = 3"), "title"),
    "meaning": (changed('meaning = "The share is full."', ""), "meaning"),
    "pattern": (changed("pattern = ", "patern = "), "patern"),
    "pattern wrong": (changed("(?P<share>\\w+)", "(?P<share>\\w+"), "pattern"),
    "within wrong": ('within = "("\n' + GOOD, "within"),
    "anchors": (changed('["is full"]', "[]"), "anchors"),
    "anchors a text": (changed('["is full"]', '"is full"'), "anchors"),
    "anchor short": (changed('["is full"]', '["is"]'), "anchor"),
    "examples": (GOOD[: GOOD.index("[[examples]]")], "examples"),
    "example without a log": (changed("log = ", "text = "), "example"),
    "example with more": (GOOD + "line = 3\n", "example"),
    "example fields no table": (GOOD[: GOOD.index("fields = { ")] + "fields = 3\n", "fields"),
    "category": (changed("storage_full", "disk_full"), "category"),
    "no category": (changed('category = "storage_full"', ""), "category"),
    "also": ('also = ["disk_full"]\n' + GOOD, "also"),
    "root cause": (changed('"environment"', '"magic"'), "root_cause"),
    "retry": (changed('"fails_again"', '"never"'), "retry"),
    "phase": ('phase = "lunch"\n' + GOOD, "phase"),
    "role": ('role = "villain"\n' + GOOD, "role"),
    "role a list": ('role = ["cause"]\n' + GOOD, "role"),
    "category a list": (changed('"storage_full"', '["storage_full"]'), "category"),
    "priority": ('priority = "high"\n' + GOOD, "priority"),
    "fixes": (changed('fixes = ["Delete {bytes} bytes on {share}.", "Delete files on {share}."]',
                      "fixes = 3"), "fixes"),
    "fix with an unknown group": (changed("{bytes} bytes", "{megabytes}"), "megabytes"),
    "name given": ('name = "x"\n' + GOOD, "name"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_field_is_named_with_its_file(tmp_path: Path, name: str) -> None:
    text, field = BAD[name]
    with pytest.raises(CatalogError) as caught:
        load(tmp_path, text)
    assert "share-full.toml" in str(caught.value)
    assert field in str(caught.value)


@pytest.mark.parametrize("raw", [b"title = ", b"\xff\xfe", b"[examples]\n= 3", b"\0"])
def test_a_file_that_is_no_toml(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "x.toml").write_bytes(raw)
    with pytest.raises(CatalogError, match=r"x\.toml cannot be read"):
        list(load_folder(tmp_path))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no such directory of signatures"):
        list(load_folder(tmp_path / "none"))


def signature(name: str, pattern: str, priority: int = 50, **fields: Any) -> Signature:
    values: dict[str, Any] = {
        "title": "t",
        "anchors": (pattern,),
        "meaning": "m",
        "category": "timeout",
    }
    return Signature(name=name, pattern=pattern, priority=priority, **values | fields)


def test_two_signatures_cannot_share_a_name() -> None:
    with pytest.raises(CatalogError, match="'a/b' is defined twice"):
        Catalog([signature("a/b", "xxx"), signature("a/b", "yyy")])


def test_another_catalogue_replaces_what_has_the_same_name() -> None:
    both = Catalog([signature("a/a", "xxx"), signature("a/b", "yyy")]) | Catalog(
        [signature("a/b", "zzz")]
    )
    assert {s.name: s.pattern for s in both} == {"a/a": "xxx", "a/b": "zzz"}
    assert len(both) == 2


def test_the_higher_priority_comes_first_then_the_name() -> None:
    catalog = Catalog([signature("b", "boom"), signature("a", "boom"), signature("c", "boom", 90)])
    assert [match.signature.name for match in catalog.matches("boom", "boom")] == ["c", "a", "b"]
    assert catalog.anchors == {"boom": (0, 1, 2)}
    assert [m.signature.name for m in catalog.matches("boom", "boom", {2})] == ["b"]


def test_within_is_looked_for_in_the_whole_block() -> None:
    catalog = Catalog([signature("a", "boom", within="forward")])
    assert not list(catalog.matches("boom", "boom in backward"))
    assert list(catalog.matches("boom", "line 3, in forward\nboom"))


def test_a_fix_that_lacks_a_value_is_left_out(tmp_path: Path) -> None:
    catalog = Catalog(load(tmp_path, GOOD))
    (match,) = catalog.matches("share scratch is full", "")
    assert match.fixes({}) == ("Delete files on scratch.",)
    (match,) = catalog.matches("share scratch is full by 12 bytes", "")
    assert match.fixes({}) == ("Delete 12 bytes on scratch.", "Delete files on scratch.")


def test_a_general_fix_is_left_out_after_the_same_one_with_values(tmp_path: Path) -> None:
    fixes = '"Delete older files, {bytes} bytes.", "Delete older files."'
    catalog = Catalog(load(tmp_path, changed('"Delete files on {share}."', fixes)))
    (match,) = catalog.matches("share scratch is full by 12 bytes", "")
    assert match.fixes({}) == ("Delete 12 bytes on scratch.", "Delete older files, 12 bytes.")
    (match,) = catalog.matches("share scratch is full", "")
    assert match.fixes({}) == ("Delete older files.",)


def test_what_was_captured_is_never_a_pattern_itself(tmp_path: Path) -> None:
    catalog = Catalog(load(tmp_path, changed("(?P<share>\\w+)", "(?P<share>\\S+)")))
    (match,) = catalog.matches(r"share {bytes}\1 is full", "")
    assert match.fixes({}) == (r"Delete files on {bytes}\1.",)


def test_own_signatures_decide_a_diagnosis(tmp_path: Path) -> None:
    diagnoser = Diagnoser(Catalog(load(tmp_path, GOOD)))
    log = Log("train.log", text=b"saving\nERROR: share scratch is full by 7 bytes\n")
    found = diagnoser.diagnose([log])
    assert (found.outcome, found.category, found.signature) == (
        "failed",
        "storage_full",
        "lab/share-full",
    )
    assert found.fixes[0] == "Delete 7 bytes on scratch."
    assert found.root is not None
    assert found.root.line == 2


# -- Checking ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (changed('log = "ERROR: share', 'log = "ERROR: disk'), "example 1 does not match"),
        (changed('bytes = "12"', 'bytes = "13"'), "gives bytes = '12' instead of '13'"),
        (changed("is half full", "is full"), "counter-example 1 matches"),
        # An anchor that the example lacks: the scan would never look at the line.
        (changed('["is full"]', '["is fuller"]'), "example 1 does not match"),
    ],
)
def test_a_broken_promise_is_told(tmp_path: Path, text: str, problem: str) -> None:
    load(tmp_path, text)
    problems, count = check_folder(tmp_path)
    assert count == 1
    assert len(problems) == 1
    assert problem in problems[0]
    assert "lab/share-full" in problems[0]


def test_the_anchor_of_another_signature_does_not_help(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/a.toml").write_text(GOOD)
    (tmp_path / "lab/b.toml").write_text(changed('["is full"]', '["is fuller"]'))
    assert check_folder(tmp_path) == (["lab/b: example 1 does not match"], 2)


def test_every_wrong_file_of_a_folder_is_told(tmp_path: Path) -> None:
    load(tmp_path, GOOD, "a/good.toml")
    for name in ("b", "c"):
        (tmp_path / f"a/{name}.toml").write_text('title = "x"')
    problems, count = check_folder(tmp_path)
    assert count == 1
    assert [("b.toml" in p, "c.toml" in p) for p in problems] == [(True, False), (False, True)]


def test_a_pattern_is_matched_without_anchors_of_others() -> None:
    example = SignatureExample("the job got boom twice")
    assert not list(check_signature(signature("a", "boom", examples=(example,))))
