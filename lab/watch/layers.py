"""Runs a program and writes the paths of the layers of its models, one a line.

    python lab/watch/layers.py PROGRAM OUTPUT

A path is that of `named_modules()`. A layer of Keras goes by its own name too.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import torch

modules: list[torch.nn.Module] = []
initialize = torch.nn.Module.__init__


def initialize_and_keep(module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
    initialize(module, *args, **kwargs)
    modules.append(module)


def main(program: str, output: str) -> None:
    torch.nn.Module.__init__ = initialize_and_keep  # type: ignore[method-assign]
    sys.argv = [program]
    runpy.run_path(program, run_name="__main__")
    paths = {path for module in modules for path, _ in module.named_modules() if path}
    paths |= {name for module in modules if isinstance(name := getattr(module, "name", None), str)}
    Path(output).write_text("\n".join(sorted(paths)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
