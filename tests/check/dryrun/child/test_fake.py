"""Programs for a GPU run on a build for the CPU, and fail as they would."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.check.dryrun.child.programs import FAIL, RUN, START
