"""Files that commands write, refused before the work where they cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import click

__all__ = ["OutputFile"]


class OutputFile(click.Path):
    """A file that can be written: its folder is there, and its name ends as it must.

    Args:
        suffix: that the name must have (``.svg``); any when empty.
    """

    def __init__(self, suffix: str = "") -> None:
        super().__init__(path_type=Path, dir_okay=False, writable=True)
        self.suffix = suffix

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """The path.

        Raises:
            click.BadParameter: it cannot be written.
        """
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if self.suffix and path.suffix != self.suffix:
            self.fail(
                f"{path}: is written as {self.suffix[1:].upper()}; name it {path.with_suffix(self.suffix)}",
                param,
                ctx,
            )
        if not path.parent.is_dir():
            self.fail(f"{path}: cannot be written: there is no folder {path.parent}", param, ctx)
        if not path.exists() and not os.access(path.parent, os.W_OK):
            self.fail(
                f"{path}: cannot be written: the folder {path.parent} is not writable", param, ctx
            )
        return path
