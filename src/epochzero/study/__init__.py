"""Corpora of failures -> statistics, tables, figures, one report.

corpus = read_file(Path("failures.jsonl.gz"))
studied = study_failures(corpus)
write_report(studied.report, Path("report/"))
"""

from __future__ import annotations

from epochzero.reports.page import ReportPage, Section, StudyResult, write_report
from epochzero.study.corpora import CorpusBuilder, FailureCase, FailureCorpus
from epochzero.study.failures import study_failures
from epochzero.study.sources import read_database, read_diagnoses, read_file, read_folder

__all__ = [
    "CorpusBuilder",
    "FailureCase",
    "FailureCorpus",
    "ReportPage",
    "Section",
    "StudyResult",
    "read_database",
    "read_diagnoses",
    "read_file",
    "read_folder",
    "study_failures",
    "write_report",
]
