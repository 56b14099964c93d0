"""Whether a folder is made under the one condition that it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check import check

_TARGET = """\
format = 1
name = "cluster"
python = "3.11"
listed = ["/data"]
[files]
"/data" = true
"/data/a.csv" = true
[[mounts]]
path = "/data"
writable = false
"""
_HEAD = "import random\nfrom pathlib import Path\n\n\ndef table(folder, always=random.random() > 0.5):\n"
_TARGET_FILE = "    target = folder / str(random.random())\n"
_MADE = "    folder.mkdir(parents=True)\n\n\ntable(Path('/data/cache'))\n"
_AFTER = _TARGET_FILE + "    if {}:\n        return\n" + _MADE


@pytest.mark.parametrize(
    ("body", "severity"),
    [
        (_AFTER.format("target.exists()"), "error"),
        (_AFTER.format("target.exists() or always"), "warning"),
        (_AFTER.format("not target.exists()"), "warning"),
        (_TARGET_FILE + "    if not target.is_file():\n    " + _MADE, "error"),
        (_TARGET_FILE + "    if target.is_file():\n    " + _MADE, "warning"),
        ("    if always:\n        return\n" + _AFTER.format("target.exists()"), "warning"),
    ],
)
def test_a_question_for_what_is_not_there_is_no_condition(
    tmp_path: Path, body: str, severity: str
) -> None:
    (tmp_path / "train.py").write_text(_HEAD + body)
    (tmp_path / "cluster.toml").write_text(_TARGET)
    found = check(
        ("python", "train.py"), tmp_path / "cluster.toml", folder=tmp_path, environment={}
    )
    assert [(one.rule, one.severity) for one in found.findings] == [("path-not-writable", severity)]
