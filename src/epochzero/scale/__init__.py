"""Many logs -> one table: the same diagnoses, computed by local processes or by a Ray cluster.

summary = diagnose_all("s3://bucket/logs", "s3://bucket/diagnoses", engine="ray")
summary.categories
"""

from __future__ import annotations

from epochzero.scale.bulk import Diagnosed, diagnose_all
from epochzero.scale.engines import ENGINES
from epochzero.scale.results import is_result, read_rows

__all__ = ["ENGINES", "Diagnosed", "diagnose_all", "is_result", "read_rows"]
