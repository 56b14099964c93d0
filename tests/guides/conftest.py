"""The guides' commands run in forks of one process that has imported the command line."""

from tests.run.conftest import preloaded_run

__all__ = ["preloaded_run"]
