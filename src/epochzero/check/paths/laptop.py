"""Paths of the machine on which a program was written, or of a notebook service."""

from __future__ import annotations

import re

from epochzero.check.paths.platform import Platform, beneath
from epochzero.check.paths.text import PathText

_PLACES = (
    (re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]"), "a Windows path"),
    (re.compile(r"/Users/[^/]+"), "a macOS home directory"),
    (re.compile(r"/Volumes/[^/]+"), "a macOS volume"),
    (re.compile(r"/content(/|$)"), "a Google Colab directory"),
    (re.compile(r"/kaggle/(input|working)(/|$)"), "a Kaggle directory"),
    (re.compile(r"/mnt/[a-z]/"), "a Windows disk in WSL"),
    (re.compile(r"/dbfs/"), "a Databricks directory"),
    (re.compile(r"(/home/[^/]+|/root)?/?(Desktop|Downloads)/"), "a desktop directory"),
)
_HOME = re.compile(r"/home/([^/]+)")
_TILDE = re.compile(r"~([A-Za-z_][\w-]*)(/|$)")


def laptop(path: str, text: PathText, platform: Platform) -> str:
    """The kind of foreign location that a path is in, as text for users; empty if it is in none.

    Args:
        path: absolute path.
        text: path as written.
        platform: a location that it knows from its files, mounts or user is not foreign.
    """
    written = text.beginning
    if _is_windows(written):
        return "" if platform.target.here and platform.there(path) else _PLACES[0][1]
    if _known(path, platform):
        return ""
    tilde = _TILDE.match(written)
    if tilde and tilde[1] != (platform.target.user.name if platform.target.user else tilde[1]):
        return f"the home directory of {tilde[1]}"
    for pattern, what in _PLACES[1:]:
        if pattern.match(path):
            return what
    home, user = _HOME.match(path), platform.target.user
    if home and user and user.home and not beneath(path, user.home) and home[1] != user.name:
        return f"the home directory of {home[1]}, but the job runs as {user.name or user.home}"
    return ""


def _is_windows(written: str) -> bool:
    return _PLACES[0][0].match(written) is not None


def _known(path: str, platform: Platform) -> bool:
    """Whether the target has the location: its own mount, a file in it, or the job directory."""
    mount = platform.mount(path)
    user = platform.target.user
    return bool(
        platform.travels(path)
        or (mount and mount.path != "/" and mount.path not in ("/home", "/mnt"))
        or any(beneath(path, mount) for mount in platform.job.mounts)
        or platform.there(path)
        or (user and user.home and beneath(path, user.home))
        or (platform.job.container and _HOME.match(path))
    )
