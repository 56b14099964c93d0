"""Labeling by hand: records, questions, annotators who do not see each other's labels, agreement.

items = read_items(Path("failures.jsonl"))
folder = LabelFolder(Path("failures.jsonl"))
scheme = folder.scheme("failures")
with folder.journal("alice", scheme) as journal:
    session = Session(items.items, scheme, journal)
    session.answer("general_code_error")
compare(scheme, items.items, folder.annotators())
"""

from __future__ import annotations

from epochzero.study.labelling.compare import compare, disagreements, exported
from epochzero.study.labelling.folder import LabelFolder
from epochzero.study.labelling.items import LabelItem, LabelItems, read_items
from epochzero.study.labelling.scheme import Scheme, load_scheme
from epochzero.study.labelling.session import Session, View

__all__ = [
    "LabelFolder",
    "LabelItem",
    "LabelItems",
    "Scheme",
    "Session",
    "View",
    "compare",
    "disagreements",
    "exported",
    "load_scheme",
    "read_items",
]
