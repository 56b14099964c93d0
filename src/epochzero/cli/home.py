"""Where EpochZero keeps what it knows of jobs."""

from epochzero.run.home import homes

__all__ = ["homes"]
