"""Targets: platforms and what is installed, mounted and allowed there.

`read_target` reads a ``target.toml`` or a preset, `this_machine` describes the current machine, `capture` does so for a
file that `write_target` writes, and `differences` compares two targets.
"""

from __future__ import annotations

from epochzero.check.target.diff import Comparison, TargetDifference, differences
from epochzero.check.target.file import parse_target, read_target, with_packages, write_target
from epochzero.check.target.gpus import cuda, first_cuda, last_cuda, oldest_driver, presets
from epochzero.check.target.image import read_image
from epochzero.check.target.interpreter import PythonInstallation, read_interpreter, running
from epochzero.check.target.machine import capture, this_machine, with_interpreter
from epochzero.check.target.packages import likely_modules, normalized, read_packages, well_known
