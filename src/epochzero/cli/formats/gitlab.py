"""GitLab's code quality report, which a merge request shows at the lines.

Source: GitLab's documentation, "Code Quality report format".
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochzero.cli.finding_labels import place_path
from epochzero.cli.formats import OutputFormat
from epochzero.cli.output import echo_json

if TYPE_CHECKING:
    from epochzero.check import CheckResult
    from epochzero.check.findings import Finding

_SEVERITIES = {"error": "critical", "warning": "minor"}


class _GitLab(OutputFormat):
    def findings(self, found: CheckResult, *, folder: Path, verbose: bool, seconds: float) -> None:
        issues = [_issue(finding, folder) for finding in found.findings]
        echo_json(issues)


def _issue(finding: Finding, folder: Path) -> dict[str, Any]:
    path = place_path(finding.place, folder)
    # Without the line number: GitLab compares fingerprints to find out which issues a merge request adds.
    identity = "\0".join((finding.rule, path, finding.place.code, finding.message))
    return {
        "description": f"{finding.message} {finding.consequence}\n{finding.fix}",
        "check_name": finding.rule,
        "fingerprint": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest(),
        "severity": _SEVERITIES.get(finding.severity, "info"),
        "location": {"path": path, "lines": {"begin": finding.place.line or 1}},
    }


FORMAT = _GitLab()
