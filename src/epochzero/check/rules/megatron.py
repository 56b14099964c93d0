"""Shared by the rules about the options of Megatron-LM."""

from __future__ import annotations

from epochzero.check.rule import SourceLocation

PARSER = (
    "import argparse\n\np = argparse.ArgumentParser()\n"
    "p.add_argument('--tensor-model-parallel-size', type=int, default=1)\n"
    "p.add_argument('--pipeline-model-parallel-size', type=int, default=1)\n"
    "p.add_argument('--micro-batch-size', type=int)\n"
    "p.add_argument('--global-batch-size', type=int)\n"
    "args = p.parse_args()\n"
)
"""The script of the cases."""


def at_option(place: SourceLocation) -> SourceLocation:
    """Where the value of an option comes from; the command if that is not known."""
    return place if place.path else SourceLocation("<command>")
