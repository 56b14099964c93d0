"""The user's own code, named as ``file.py:name``. It runs because the user requested it."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from epochzero.errors import InputError

_NAMED = re.compile(r"(?P<file>.+\.py):(?P<name>[^\W\d]\w*)")


def is_own_code(source: str) -> bool:
    """Whether a source has the form ``file.py:name``."""
    return _NAMED.fullmatch(source) is not None


def made_by(source: str) -> Any:
    """Call the function or class without arguments and return the result; return anything else as it is.

    Args:
        source: ``file.py:name``. The file's directory is importable, as when Python runs the file.

    Raises:
        InputError: the file or the name does not exist, or the code fails.
    """
    named = _NAMED.fullmatch(source)
    if named is None:
        raise InputError(f"{source} must have the form file.py:function")
    path = Path(named["file"])
    if not path.is_file():
        raise InputError(f"{source}: the file {path} does not exist")
    with as_input_error(source):
        made = getattr(_imported(path.resolve()), named["name"], None)
        if made is None:
            raise InputError(f"{source}: {path.name} has no {named['name']}")
        # An existing module or data loader may be callable, too.
        return made() if isinstance(made, type) or _is_function(made) else made


@contextmanager
def as_input_error(source: str) -> Iterator[None]:
    """Convert failures of the user's code to errors with its line.

    Raises:
        InputError: the code failed.
    """
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        path = Path(source.rpartition(":")[0])
        raise InputError(f"{source}: fails with {_description(error, path)}") from error


def _is_function(made: Any) -> bool:
    return callable(made) and not hasattr(made, "forward") and not hasattr(made, "__getitem__")


@cache
def _imported(path: Path) -> ModuleType:
    """Import the file once, although model and data may both come from it."""
    name = f"_epochzero_own_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _description(error: BaseException, path: Path) -> str:
    """Return type and message, and the last line of the user's file in the traceback."""
    message = " ".join(str(error).split())
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).name == path.name]
    return f"{text} ({path.name}, line {lines[-1]})" if lines else text
