"""The output formats of reports: each module here with a ``FORMAT`` is one.

A format writes the kinds of reports for which it overrides a method of `OutputFormat`; each command offers the formats
that write its kind. Imports for one kind are inside its method, so that other commands do not wait for them.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from epochzero.check import CheckResult
    from epochzero.diagnose import Diagnosis
    from epochzero.locate import Ranking
    from epochzero.store.queries import JobSummary

Kind = Literal["findings", "diagnoses", "ranking", "jobs"]
"""Kind of a report; a method of `OutputFormat`."""
DEFAULT = "text"


class OutputFormat:
    """An output format; each overridden method prints one kind of report."""

    def findings(self, found: CheckResult, *, folder: Path, verbose: bool, seconds: float) -> None:
        """Print the findings of a check.

        Args:
            found: result of the check.
            folder: job directory; paths are printed relative to the current directory.
            verbose: whether to list everything that could not be checked.
            seconds: duration of the check.
        """
        raise NotImplementedError

    def diagnoses(self, found: Iterable[Diagnosis], *, top: int, many: bool) -> None:
        """Print diagnoses.

        Args:
            found: the diagnoses, one a job.
            top: maximum number of fixes, and of consequences.
            many: whether the user asked for several jobs, even if it is one.
        """
        raise NotImplementedError

    def ranking(self, found: Ranking, *, explain: bool) -> None:
        """Print a ranking."""
        raise NotImplementedError

    def jobs(self, found: Sequence[JobSummary]) -> None:
        """Print a list of jobs."""
        raise NotImplementedError


@cache
def formats() -> Mapping[str, OutputFormat]:
    """Return the formats by the names of their modules, the default first."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    names.sort(key=lambda name: name != DEFAULT)
    return {name: import_module(f"{__name__}.{name}").FORMAT for name in names}


def names_of(kind: Kind) -> tuple[str, ...]:
    """Return the names of the formats that write a kind of report, the default first."""
    own = getattr(OutputFormat, kind)
    return tuple(
        name for name, writer in formats().items() if getattr(type(writer), kind) is not own
    )
