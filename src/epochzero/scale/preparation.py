"""Prepares at import what each worker needs; local workers inherit it by forking."""

from __future__ import annotations

from epochzero.scale.work import diagnoser

diagnoser((), True)
