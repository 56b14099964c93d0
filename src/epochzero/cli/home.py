"""The directory in which EpochZero stores jobs."""

from epochzero.run.home import homes

__all__ = ["homes"]
