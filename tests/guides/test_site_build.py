"""The site builds without a warning, and no link of its pages leads nowhere."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_link_of_the_built_site_leads_somewhere(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="the extra `site` builds the site")
    # The build writes generated pages next to the others.
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("reference"))
    build = [sys.executable, *"-m sphinx -q -W --keep-going docs site".split()]
    built = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    assert list(runpy.run_path(str(DOCS / "links.py"))["broken"](tmp_path / "site")) == []
