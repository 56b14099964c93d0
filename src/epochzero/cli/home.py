"""The directory in which EpochZero stores jobs."""

from epochzero.run.records.home import homes

__all__ = ["homes"]
