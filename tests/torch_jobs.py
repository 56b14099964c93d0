"""Jobs that import torch."""

from __future__ import annotations

import re

_BEFORE = (
    "import gc, sys; gc.disable(); "
    'sys.modules.setdefault("torch._meta_registrations", sys); sys.modules.setdefault("torch.export", sys)'
)
# Generators are of a class that `rng_prims` completes. Objects that are frozen are not visited at exit.
_AFTER = (
    "import torch._prims.rng_prims; "
    'torch._dynamo = sys.modules["torch._dynamo"] = type("Absent", (), {'
    '"__getattr__": lambda self, name: self, '
    '"__call__": lambda self, function=None, *_, **__: function})(); gc.freeze(); gc.enable()'
)


def light_torch(program: str) -> str:
    """A job that imports of torch what it needs: neither the compiler, which optimizers import, nor export and operators on
    shapes alone, and without collecting garbage. It takes a quarter of the processor time.

    For jobs that compile nothing; no line moves.
    """
    return re.sub(
        r"^import .*\btorch\b.*$",
        lambda found: f"{_BEFORE}; {found[0]}; {_AFTER}",
        program,
        count=1,
        flags=re.MULTILINE,
    )
