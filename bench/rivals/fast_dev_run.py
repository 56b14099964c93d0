"""Runs a Lightning script with ``fast_dev_run``: one batch of training, validation and test each.

    python fast_dev_run.py SCRIPT ARGUMENTS...

Needs nothing but Lightning. The last line of the output is a JSON object: whether the script ended
well and, where it did not, the error's text and the frames of it, the innermost last.
"""

from __future__ import annotations

import functools
import importlib
import json
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any


def main() -> None:
    """Runs the script of the command line."""
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    _shorten_every_trainer()
    told: dict[str, Any] = {"ended_well": True}
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except (Exception, SystemExit) as error:
        if not isinstance(error, SystemExit) or error.code:
            frames = [
                (one.filename, one.lineno) for one in traceback.extract_tb(error.__traceback__)
            ]
            text = f"{type(error).__name__}: {error}"
            told = {"ended_well": False, "text": text, "frames": frames}
    print(f"\n{json.dumps(told)}")


def _shorten_every_trainer() -> None:
    trainer = importlib.import_module("lightning.pytorch").Trainer
    ordinary = trainer.__init__

    @functools.wraps(ordinary)
    def short(self: Any, *arguments: Any, **options: Any) -> None:
        ordinary(self, *arguments, **options | {"fast_dev_run": True})

    trainer.__init__ = short


if __name__ == "__main__":
    main()
