"""Loads the signatures when imported, in the process that the workers are forked from."""

from __future__ import annotations

from epochzero.web.diagnosis_worker import diagnoser

diagnoser()
