"""Jobs that import torch."""

from __future__ import annotations

import re

_ABSENT = (
    'import sys; torch._dynamo = sys.modules["torch._dynamo"] = type("Absent", (), {'
    '"__getattr__": lambda self, name: self, '
    '"__call__": lambda self, function=None, *_, **__: function})()'
)


def without_compiler(program: str) -> str:
    """A job whose optimizers do not import torch's compiler, which takes as long as importing torch.

    For jobs that compile nothing; no line moves.
    """
    return re.sub(
        r"^import .*\btorch\b.*$",
        lambda found: f"{found[0]}; {_ABSENT}",
        program,
        count=1,
        flags=re.MULTILINE,
    )
