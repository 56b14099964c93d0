"""The job installs its libraries each time it starts."""

from collections.abc import Sequence

from epochzero.check.rule import Claims, JobView, Rule, Severity, Target, claim_at, claim_at_start
from epochzero.check.rules.commands import started, words_of

_SYSTEM = {"apt", "apt-get", "yum", "dnf", "apk", "zypper"}
_LOCAL = ("--no-index", "--index-url", "-i", "--find-links", "-f", "--extra-index-url")
FIX = (
    "Install the packages in the image. For pure Python packages, you can also run "
    "`pip install --target` once and add the target directory to PYTHONPATH."
)


def _check(view: JobView) -> Claims:
    for source in view.job.launch_script.installs:
        severity, message, consequence, category = _judged(
            words_of(source.text), view.target, pip=True
        )
        yield claim_at_start(
            source.place,
            category=category,
            severity=severity,
            message=message,
            consequence=consequence,
            fix=FIX,
        )
    for command in started(view.program):
        if arguments := _pip_arguments(command.words):
            severity, message, consequence, category = _judged(arguments, view.target, pip=True)
        elif _installs_system_packages(command.words):
            severity, message, consequence, category = _judged(
                command.words, view.target, pip=False
            )
        else:
            continue
        yield claim_at(
            command.at,
            category=category,
            message=message,
            consequence=consequence,
            fix=FIX,
            severity=severity if command.at.certain and command.raises else "warning",
        )


def _pip_arguments(words: Sequence[str]) -> tuple[str, ...]:
    """The arguments of ``pip install``; empty for another command."""
    for number, word in enumerate(words[:4]):
        if word.rpartition("/")[2].startswith("pip") and words[number + 1 : number + 2] == (
            "install",
        ):
            return tuple(words[number + 1 :])
    return ()


def _installs_system_packages(words: Sequence[str]) -> bool:
    return words[0].rpartition("/")[2] in _SYSTEM and bool({"install", "add"} & set(words[1:4]))


def _judged(words: Sequence[str], target: Target, *, pip: bool) -> tuple[Severity, str, str, str]:
    """Severity, message, consequence and category of an installation on the target."""
    root = target.user.uid == 0 if target.user and target.user.uid is not None else None
    if not pip and root is False:
        return (
            "error",
            f"{words[0]} needs root, but the job runs as "
            f"{target.user.name if target.user else ''}.",
            f"{words[0]}: Permission denied",
            "permission_denied",
        )
    if target.network.internet is False and not any(word.startswith(_LOCAL) for word in words):
        return (
            "error",
            "The job downloads and installs packages, but the target has no internet access.",
            "ERROR: Could not find a version that satisfies the requirement"
            if pip
            else "Temporary failure resolving the package server",
            "communication_failure",
        )
    return (
        "warning",
        "The job installs packages at startup: in every process again, in the versions of "
        "that day.",
        "PermissionError if the environment belongs to root, or a run with other versions.",
        "permission_denied",
    )


RULE = Rule(
    category="permission_denied",
    why="The user of the job is often not the user that built the image. Many jobs have no network "
    "access. All ranks on a node install into the same directory at the same time.",
    fix=FIX,
    source="Zhang et al., ICSE 2020, section 3.2: `pip install` without root is the usual Permission "
    "Denied",
    check=_check,
    examples="""
        import subprocess, sys
        subprocess.check_call(['pip', 'install', 'einops'])  # <-
        ----
        import os
        os.system('pip list')
        ----
        print('pip install einops')
    """,
)
