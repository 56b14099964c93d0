"""Predicts failures of a job before it costs GPU time: statically, and in a dry run if requested.

`check` takes the command line that a person would submit and a `Target`, and returns a `CheckResult`: what will
go wrong, where and in which phase. Names are loaded on first use, because
`epochzero.check.target` is also used where no rule is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.lazy_exports import export_lazily

if TYPE_CHECKING:
    from epochzero.check.data import DataSet as DataSet
    from epochzero.check.dryrun.contain.model import Limits as Limits
    from epochzero.check.dryrun.memory.history import PastPeak as PastPeak
    from epochzero.check.dryrun.model import DryRun as DryRun
    from epochzero.check.dryrun.records import Record
    from epochzero.check.findings import Finding as Finding
    from epochzero.check.findings import Severity as Severity
    from epochzero.check.findings import SourceLocation as SourceLocation
    from epochzero.check.findings import Unknown as Unknown
    from epochzero.check.pipeline import run_check as run_check
    from epochzero.check.request import CheckRequest as CheckRequest
    from epochzero.check.result import CheckResult as CheckResult
    from epochzero.check.rules import Case as Case
    from epochzero.check.rules import Rule as Rule
    from epochzero.check.target.model import Target as Target


def check(
    command: str | Sequence[str],
    target: Target | str | Path | None = None,
    *,
    folder: str | Path = ".",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    data: Sequence[DataSet] = (),
    dry: Limits | None = None,
    synthesize: bool = False,
    fit: str = "",
    layout: str = "",
    history: Sequence[PastPeak] = (),
    on_record: Callable[[Record], None] = lambda _: None,
) -> CheckResult:
    """Predicts what will go wrong when the job of a command line runs on a platform.

    Args:
        command: the command line as it would be submitted, as a text or by words.
        target: the platform, or the name or path of its description; None for the one that the
            project's settings name, else this machine, with the Python that the command would find.
        folder: the directory in which the command would run; its ``pyproject.toml`` may contain settings.
        select: ids of the rules to run; when empty those of the settings, else all.
        ignore: ids of rules to skip, in addition to those of the settings.
        environment: variables of the shell in which the command would run.
        data: data sets of the job, to be compared with their profiles; when empty those of the settings.
        dry: also run the job dry, within these limits.
        synthesize: in the dry run, generate missing data sets from their profiles, and try their
            corner cases too.
        fit: in the dry run, find the largest value of this option of the job, by its name, with which
            it fits on the target's GPU.
        layout: in the dry run, estimate the memory of a rank if the job were divided over GPUs in this way, such
            as ``fsdp=8,tensor=2``.
        history: GPU memory that past runs took; in the dry run, those of this job correct the estimate.
        on_record: called with each record of a dry run while it runs, from more than one thread.

    Raises:
        InputError: the command runs no Python that can be read, or the folder, the settings, the
            target, a profile or a rule's name is wrong.
    """
    import shlex

    from epochzero.check.pipeline import run_check
    from epochzero.check.request import CheckRequest

    return run_check(
        CheckRequest(
            command=tuple(shlex.split(command) if isinstance(command, str) else command),
            target=target,
            folder=Path(folder),
            select=tuple(select),
            ignore=tuple(ignore),
            environment=environment,
            data=tuple(data),
            dry=dry,
            synthesize=synthesize,
            fit=fit,
            layout=layout,
            history=tuple(history),
            on_record=on_record,
        )
    )


_ROOMS = {
    "epochzero.check.data": ("DataSet",),
    "epochzero.check.dryrun.contain.model": ("Limits",),
    "epochzero.check.dryrun.memory.history": ("PastPeak",),
    "epochzero.check.dryrun.model": ("DryRun",),
    "epochzero.check.findings": ("Finding", "SourceLocation", "Severity", "Unknown"),
    "epochzero.check.pipeline": ("run_check",),
    "epochzero.check.request": ("CheckRequest",),
    "epochzero.check.result": ("CheckResult",),
    "epochzero.check.rules": ("Case", "Rule"),
    "epochzero.check.target.model": ("Target",),
}

export_lazily(__name__, _ROOMS)
