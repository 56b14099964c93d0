"""`torch.compile` left out: what it compiles runs as written.

A compiler traces the hooks of whoever watches a job together with the model, and refuses some of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

UNCOMPILED = "torch.compile is skipped: the program runs without compilation"


def leave_uncompiled(torch: Any, assume: Callable[[str], None]) -> None:
    """Replaces the functions that compile; ``assume`` is called whenever they are."""

    def uncompiled(model: Any = None, *_: Any, **__: Any) -> Any:
        assume(UNCOMPILED)
        return (lambda function: function) if model is None else model

    torch.compile = uncompiled
    torch.nn.Module.compile = lambda *_, **__: assume(UNCOMPILED)
