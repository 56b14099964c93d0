"""Reports: tables, figures and statistics on one page, for studies and for tests of models.

report = Report("Title", "Lead.", [Section("Part", ["A paragraph.", table, figure])])
write_report(report, Path("report/"))
"""

from __future__ import annotations

from epochzero.reports.figures import Figure, require_matplotlib
from epochzero.reports.page import ReportPage, Section, StudyResult, body_html, write_report
from epochzero.reports.statistics import Estimate
from epochzero.reports.tables import Column, Table
