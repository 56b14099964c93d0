"""The result of a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from epochzero.check.dryrun.model import DryRun
from epochzero.check.findings import Finding, Unknown

SCHEMA = "epochzero.findings/1"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check.

    Attributes:
        jobs: the commands as they finally run, for people; a launch script may run several.
        target: name of the target.
        findings: errors first, then by phase and place.
        unknowns: by place.
        suppressed: findings that a comment or the settings suppress, with the reason.
        files: number of source files that were read.
        rules: ids of the rules that ran.
        dry: the dry run of each job that was run dry; its failures are among the findings.
    """

    jobs: tuple[str, ...]
    target: str
    findings: tuple[Finding, ...]
    unknowns: tuple[Unknown, ...]
    suppressed: tuple[tuple[Finding, str], ...]
    files: int
    rules: tuple[str, ...]
    dry: tuple[DryRun, ...] = ()

    def to_dict(self) -> Mapping[str, Any]:
        """The JSON form, see ``docs/json.md``."""
        return {"schema": SCHEMA, **asdict(self)}
