"""The rivals that can run with what a benchmark's command line gives."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from common import scratch

from rivals import Rival
from rivals.keywords import Keywords
from rivals.last_exception import LastException
from rivals.nvrx import Nvrx
from rivals.openpai import OpenPai

__all__ = ["add_options", "chosen", "not_run"]


def add_options(parser: ArgumentParser) -> None:
    """Options that say where the rivals' repositories lie."""
    parser.add_argument("--openpai", type=Path, metavar="DIR", help="clone of microsoft/pai")
    parser.add_argument(
        "--nvrx", type=Path, metavar="DIR", help="clone of NVIDIA/nvidia-resiliency-ext"
    )


def chosen(options: Namespace) -> list[Rival]:
    """The rivals that can run."""
    rivals: list[Rival] = [Keywords(), LastException()]
    if options.openpai:
        rivals.append(OpenPai(options.openpai))
    if options.nvrx:
        rivals.append(Nvrx(options.nvrx, scratch()))
    return rivals


def not_run(options: Namespace) -> dict[str, str]:
    """The rivals that were not given."""
    return {name: "not run" for name in ("openpai", "nvrx") if not getattr(options, name)}
