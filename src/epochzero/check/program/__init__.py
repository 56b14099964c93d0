"""The program of a job, read as a whole without running it."""

from epochzero.check.program.interpreter import read_program

__all__ = ["read_program"]
