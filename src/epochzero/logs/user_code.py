"""Which frames of a stack are of the user's own code."""

from __future__ import annotations

import re
from functools import lru_cache

from epochzero.logs.traceback import Frame

_LIBRARY = re.compile(
    r"site-packages|dist-packages|[/\\]lib(?:64)?[/\\]python\d|[/\\]lib[/\\](?!.*[/\\]home[/\\])python|<frozen |<string>"
    r"|<__array_function__|^/usr/lib|[/\\]importlib[/\\]|[/\\]torch[/\\](?:nn|autograd|optim|utils|distributed|cuda|jit|onnx|multiprocessing|_\w+|(?:functional|serialization|tensor)\.py)|[/\\]tensorflow(?:_core)?[/\\]python[/\\]"
    r"|[/\\]Lib[/\\](?:threading|runpy|multiprocessing|concurrent|site-packages|importlib|subprocess|json)"
    r"|[/\\]python\d?\.?\d?[/\\]lib[/\\]|<decorator-gen|<attrs generated|<eval_with_key|[/\\]bin[/\\]\w+$|^(?![/\\.]).*\.(?:pyx|pxi|pxd)$"
    # What of us runs within a job, wherever we are installed.
    r"|[/\\]epochzero[/\\](?:injected[/\\]|run[/\\](?:\w+[/\\](?:child|inside)|memory)[/\\]|check[/\\]dryrun[/\\]child[/\\]|integrations[/\\])"
)


def is_user_frame(frame: Frame) -> bool:
    """Whether a frame is of the user's own code rather than of an installed library."""
    return not _in_library(frame.file)


@lru_cache(maxsize=4096)
def _in_library(file: str) -> bool:
    return _LIBRARY.search(file) is not None
