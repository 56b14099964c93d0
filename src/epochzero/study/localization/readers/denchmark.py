"""Denchmark: a directory ``owner+name`` per project with a file per bug, as XML (``Generator/data/final_dataset``)
or JSON (``JSonSet/fulljson``; ``simplejson`` with fewer fields).

Kim et al.: "Denchmark: A Bug Benchmark of Deep Learning-related Software", MSR 2021;
https://github.com/RosePasta/Denchmark_BRs. The class of a project is only in its workbook, which is not
read.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_MARKUP = re.compile(r"</?denchmark-[^<>]*>")
_INCOMPLETE = "it lacks the bug or the commit"
_NO_XML = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def read(path: Path) -> dict[str, Any] | str:
    """Return the record of a file, ``.xml`` or ``.json``, or why there is none."""
    text = path.read_text("utf-8", "replace")
    return _of_json(text, path) if path.suffix == ".json" else _of_xml(text, path)


# XML


def _of_xml(text: str, path: Path) -> dict[str, Any] | str:
    text = _NO_XML.sub(" ", text)
    if "<!DOCTYPE" in text[:1000] or "<!ENTITY" in text:
        return "its XML declares entities"
    try:
        top = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return "it is not XML"
    bug, commit = top.find("bug"), top.find("commit")
    if bug is None or commit is None or not bug.get("id") or not commit.get("id"):
        return _INCOMPLETE
    return _record(
        path.parent.name,
        bug.get("id"),
        (bug.get("open_date"), bug.get("closed_time")),
        (bug.findtext("summary"), bug.findtext("description")),
        (commit.get("id"), commit.get("date")),
        (_of_modification(element) for element in commit.findall("modification")),
    )


def _of_modification(element: ElementTree.Element) -> dict[str, Any]:
    names = (method.get("name") for method in element.findall("method"))
    return _file(
        element.get("change_type"), element.get("old_name"), element.get("new_name"), names
    )


# JSON


def _of_json(text: str, path: Path) -> dict[str, Any] | str:
    try:
        top = json.loads(text)
    except (ValueError, RecursionError):
        return "it is not JSON"
    try:
        bug, commit = top["BR"], top["commit"]
        return _record(
            path.parent.name,
            bug["BR_id"],
            (bug["BRopenT"], bug["BRcloseT"]),
            (bug["BR_text"]["BRsummary"], bug["BR_text"]["BRdescription"]),
            (commit["commit_id"], commit["commitT"]),
            [_of_changed(value) for value in commit["changed_files"].values()],
        )
    except (KeyError, TypeError, AttributeError):
        return _INCOMPLETE


def _of_changed(record: dict[str, Any]) -> dict[str, Any]:
    """Return a file of ``changed_files``; a hunk outside of methods has no ``method_info``."""
    hunks = record.get("hunks", {}).values()
    names = (hunk["method_info"]["method_name"] for hunk in hunks if "method_info" in hunk)
    return _file(
        record["file_change_type"], record["file_old_name"], record["file_new_name"], names
    )


# Both


def _record(
    project: str,
    bug: str | None,
    times: tuple[str | None, str | None],
    texts: tuple[str | None, str | None],
    fix: tuple[str | None, str | None],
    files: Iterable[dict[str, Any]],
) -> dict[str, Any]:
    summary, description = (_MARKUP.sub("\n", text or "").strip() for text in texts)
    return {
        "id": f"{project}#{bug}",
        "project": project,
        "opened": times[0],
        "closed": times[1],
        "summary": summary,
        "description": description,
        "project_class": [],
        "fix": {"sha": fix[0], "date": fix[1], "files": list(files)},
    }


def _file(
    change: str | None, old: str | None, new: str | None, methods: Iterable[str | None]
) -> dict[str, Any]:
    """Return a changed file; ``None`` stands for a path that does not exist."""
    return {
        "change": change,
        "old": None if old == "None" else old,
        "new": None if new == "None" else new,
        "methods": [{"name": name} for name in methods],
    }
