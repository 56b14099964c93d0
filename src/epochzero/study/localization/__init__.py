"""Bug-localization techniques on many bugs: measured, compared, and compared with published results.

chosen = select(read_reports(Path("reports.jsonl.gz")))
measured, lost = measure(chosen.bugs, chosen.asked, clones(repos), ["blia"], work)
studied = study_localization(subjects_of(measured), ["blia"], lost)
write_report(studied.report, Path("report/"))
"""

from __future__ import annotations

from epochzero.study.localization.bugs import TREES, Bug, bug_of, bugs_of, clones
from epochzero.study.localization.external import read_rankings, with_rankings
from epochzero.study.localization.findings import StudyFinding
from epochzero.study.localization.measuring import (
    DEFAULT_TECHNIQUES,
    Measured,
    measure,
)
from epochzero.study.localization.readers import Reports, read_reports
from epochzero.study.localization.selection import BugSelection, select
from epochzero.study.localization.study import study_localization
from epochzero.study.localization.subjects import StudyBug, subjects_of

__all__ = [
    "DEFAULT_TECHNIQUES",
    "TREES",
    "Bug",
    "BugSelection",
    "Measured",
    "Reports",
    "StudyBug",
    "StudyFinding",
    "bug_of",
    "bugs_of",
    "clones",
    "measure",
    "read_rankings",
    "read_reports",
    "select",
    "study_localization",
    "subjects_of",
    "with_rankings",
]
