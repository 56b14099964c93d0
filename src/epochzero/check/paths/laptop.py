"""Paths of the machine on which a program was written, or of a service that gives notebooks."""

from __future__ import annotations

import re

from epochzero.check.paths.platform import Platform, beneath
from epochzero.check.paths.text import PathText

_PLACES = (
    (re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]"), "a path of Windows"),
    (re.compile(r"/Users/[^/]+"), "a home folder of macOS"),
    (re.compile(r"/Volumes/[^/]+"), "a disk of macOS"),
    (re.compile(r"/content(/|$)"), "a folder of Google Colab"),
    (re.compile(r"/kaggle/(input|working)(/|$)"), "a folder of Kaggle"),
    (re.compile(r"/mnt/[a-z]/"), "a Windows disk in WSL"),
    (re.compile(r"/dbfs/"), "a folder of Databricks"),
    (re.compile(r"(/home/[^/]+|/root)?/?(Desktop|Downloads)/"), "a folder of a desktop"),
)
_HOME = re.compile(r"/home/([^/]+)")
_TILDE = re.compile(r"~([A-Za-z_][\w-]*)(/|$)")


def laptop(path: str, text: PathText, platform: Platform) -> str:
    """What kind of foreign place a path is in, for people; empty when it is none.

    Args:
        path: absolute.
        text: as written.
        platform: a place that it knows, by its files, mounts or user, is not foreign.
    """
    written = text.beginning
    if _is_windows(written):
        return "" if platform.target.here and platform.there(path) else _PLACES[0][1]
    if _known(path, platform):
        return ""
    tilde = _TILDE.match(written)
    if tilde and tilde[1] != (platform.target.user.name if platform.target.user else tilde[1]):
        return f"the home folder of {tilde[1]}"
    for pattern, what in _PLACES[1:]:
        if pattern.match(path):
            return what
    home, user = _HOME.match(path), platform.target.user
    if home and user and user.home and not beneath(path, user.home) and home[1] != user.name:
        return f"the home folder of {home[1]}, and the job runs as {user.name or user.home}"
    return ""


def _is_windows(written: str) -> bool:
    return _PLACES[0][0].match(written) is not None


def _known(path: str, platform: Platform) -> bool:
    """Whether the target has the place: a mount of its own, a file in it, or the job's folder."""
    mount = platform.mount(path)
    user = platform.target.user
    return bool(
        platform.travels(path)
        or (mount and mount.path != "/" and mount.path not in ("/home", "/mnt"))
        or any(beneath(path, one) for one in platform.job.mounts)
        or platform.there(path)
        or (user and user.home and beneath(path, user.home))
        or (platform.job.container and _HOME.match(path))
    )
