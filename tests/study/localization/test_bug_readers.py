"""Bug reports in the formats of public collections, as small made samples."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from epochzero.errors import InputError
from epochzero.study.localization import bug_of, read_reports
from epochzero.study.localization.bugs import Bug
from epochzero.study.localization.readers.patches import files_of

PATCH = """diff --git a/tool/net.py b/tool/net.py
index 1..2 100644
--- a/tool/net.py
+++ b/tool/net.py
@@ -1 +1 @@
-a
+b
diff --git a/old name.py b/new.py
similarity index 90%
rename from old name.py
rename to new.py
--- a/old name.py
+++ b/new.py
@@ -1 +1 @@
--- a/inside.py
diff --git a/added.py b/added.py
new file mode 100644
--- /dev/null
+++ b/added.py
@@ -0,0 +1 @@
+x
"""
DENCHMARK = """<bug_data>
<bug id='213' author='a' open_date='2019-03-03T04:10:03Z' closed_time='2019-03-03T19:59:59Z'>
  <summary>Noise is wrong \x08 on small images</summary>
  <description>&lt;denchmark-code&gt;noise(1)&lt;/denchmark-code&gt;</description>
  <comments></comments>
</bug>
<commit id='b01e' author='b' date='2019-03-03 11:59:59-08:00'>
  <modification change_type='MODIFY' old_name='tool\\functional.py' new_name='tool\\functional.py'>
    <method name='noise' parameters='image'><added_lines>593</added_lines></method>
  </modification>
  <modification change_type='ADD' old_name='None' new_name='tool\\new.py'></modification>
</commit>
</bug_data>"""
DENCHMARK_JSON = {
    "BR": {
        "BR_id": "213",
        "BR_author": "a",
        "BRopenT": "2019-03-03T04:10:03Z",
        "BRcloseT": "2019-03-03T19:59:59Z",
        "BR_text": {
            "BRsummary": "Noise is wrong   on small images",
            "BRdescription": "<denchmark-code>noise(1)</denchmark-code>",
        },
        "comments": {},
    },
    "commit": {
        "commit_id": "b01e",
        "commit_author": "b",
        "commitT": "2019-03-03 11:59:59-08:00",
        "changed_files": {
            "file_0": {
                "file_change_type": "MODIFY",
                "file_Nmethod": 1,
                "file_old_name": "tool\\functional.py",
                "file_new_name": "tool\\functional.py",
                "hunks": {
                    "hunk_0": {
                        "Ismethod": 1,
                        "added_lines": "593",
                        "deleted_lines": None,
                        "method_info": {"method_name": "noise", "method_params": "image"},
                    },
                    "hunk_1": {"Ismethod": 0, "added_lines": "1", "deleted_lines": None},
                },
            },
            "file_1": {
                "file_change_type": "ADD",
                "file_Nmethod": 0,
                "file_old_name": "None",
                "file_new_name": "tool\\new.py",
            },
        },
    },
}
SWE = {
    "instance_id": "owner__tool-1",
    "repo": "owner/tool",
    "base_commit": "abc",
    "patch": PATCH,
    "problem_statement": "It crashes\nSee here.",
}


def test_a_patch_has_files() -> None:
    found = [(one["change"], one["old"], one["new"]) for one in files_of(PATCH)]
    assert found == [
        ("MODIFY", "tool/net.py", "tool/net.py"),
        ("RENAME", "old name.py", "new.py"),
        ("ADD", None, "added.py"),
    ]


def test_denchmark(tmp_path: Path) -> None:
    folder = tmp_path / "full" / "owner+tool"
    folder.mkdir(parents=True)
    (folder / "213.xml").write_text(DENCHMARK)
    (folder / "2.xml").write_text("<bug_data><bug id='2'/></bug_data>")
    (folder / "3.xml").write_text("<bug_data")
    (folder / "4.xml").write_text('<!DOCTYPE a [<!ENTITY b "c">]><bug_data/>')
    found = read_reports(tmp_path)
    bug = bug_of(found.records[0])
    assert isinstance(bug, Bug)
    assert (bug.report.id, bug.project, bug.fix) == ("owner+tool#213", "owner+tool", "b01e")
    assert bug.files == ("tool/functional.py",)
    assert bug.functions == {"tool/functional.py": ("noise",)}
    assert bug.report.text == "noise(1)"
    assert bug.report.opened is not None
    assert found.left_out == {
        "it lacks the bug or the commit": 1,
        "it is not XML": 1,
        "its XML declares entities": 1,
    }


def test_denchmark_as_json(tmp_path: Path) -> None:
    """`JSonSet/fulljson` holds what the XML does, and `simplejson` the same without complexities."""
    folder = tmp_path / "fulljson" / "owner+tool"
    folder.mkdir(parents=True)
    (folder / "213.json").write_text(json.dumps(DENCHMARK_JSON))
    (folder / "2.json").write_text(json.dumps({**DENCHMARK_JSON, "commit": {}}))
    (folder / "3.json").write_text("[1]")
    (folder / "4.json").write_text("{")
    found = read_reports(tmp_path)
    (record,) = found.records
    (tmp_path / "xml" / "owner+tool").mkdir(parents=True)
    (tmp_path / "xml" / "owner+tool" / "213.xml").write_text(DENCHMARK)
    assert record == read_reports(tmp_path / "xml").records[0]
    bug = bug_of(record)
    assert isinstance(bug, Bug)
    assert bug.functions == {"tool/functional.py": ("noise",)}
    assert found.left_out == {"it lacks the bug or the commit": 2, "it is not JSON": 1}


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "parquet"])
def test_swe_bench(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"bench.{form}"
    line = json.dumps(SWE).encode()
    if form == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([SWE]), path)
    else:
        path.write_bytes(gzip.compress(line) if form.endswith("gz") else line)
    bug = bug_of(read_reports(path).records[0])
    assert isinstance(bug, Bug)
    assert (bug.report.title, bug.report.text) == ("It crashes", "See here.")
    assert (bug.project, bug.parent, bug.fix) == ("owner+tool", "abc", "")
    assert bug.files == ("tool/net.py", "old name.py")


def test_bugs_in_py(tmp_path: Path) -> None:
    bug = tmp_path / "tool" / "bugs" / "1"
    bug.mkdir(parents=True)
    (tmp_path / "tool" / "project.info").write_text(
        'github_url="https://github.com/owner/tool"\nstatus="OK"\n'
    )
    (bug / "bug.info").write_text(
        'python_version="3.8"\nbuggy_commit_id="abc"\nfixed_commit_id="def"\ntest_file="tests/t.py"\n'
    )
    (bug / "bug_patch.txt").write_text(PATCH)
    (bug / "run_test.sh").write_text("pytest tests/t.py::test_forward\n")
    (bug.parent / "2").mkdir()
    (bug.parent / "2" / "bug.info").write_text('python_version="3.8"\n')
    found = read_reports(tmp_path)
    one = bug_of(found.records[0])
    assert isinstance(one, Bug)
    assert (one.project, one.parent, one.fix) == ("owner+tool", "abc", "def")
    assert "test_forward" in one.report.text
    assert found.left_out == {"its commits or its patch are missing": 1}


def test_bad_records_are_left_out_with_their_reasons(tmp_path: Path) -> None:
    good = {"id": "a", "project": "o+t", "summary": "x", "fix": {"sha": "1", "files": []}}
    lines = [good, good, {"id": "b"}, {**good, "id": "c", "match": 0.2}, [1], {"problem_statement": "x"}]  # fmt: skip
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines) + "{no\n\n")
    found = read_reports(path)
    assert [one["id"] for one in found.records] == ["a"]
    assert sum(found.left_out.values()) == 6
    assert found.left_out["has the id of an earlier report"] == 1


@pytest.mark.parametrize(
    "change",
    [
        {"fix": None},
        {"fix": {"sha": "1", "files": None}},
        {"fix": {"sha": "1", "files": [{"change": "MODIFY"}]}},
        {"fix": {"sha": "1", "files": [{"change": "MODIFY", "old": 3}]}},
        {"fix": {"sha": "1", "files": [{"change": "MODIFY", "old": "tests/test_a.py"}]}},
        {"summary": "", "description": None},
        {"summary": 3},
        {"project": None},
    ],
)
def test_a_record_without_a_bug_says_why(change: dict[str, object]) -> None:
    file = {"change": "MODIFY", "old": "a.py"}
    good = {"id": "a", "project": "o+t", "summary": "x", "fix": {"sha": "1", "files": [file]}}
    assert isinstance(bug_of(good), Bug)
    assert isinstance(bug_of({**good, **change}), str)


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b"{}" * 99)[:20])
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "empty").mkdir()
    for name in ("cut.jsonl.gz", "bad.parquet", "empty", "missing"):
        with pytest.raises(InputError, match=name):
            read_reports(tmp_path / name)
