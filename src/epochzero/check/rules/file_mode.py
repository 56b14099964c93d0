"""A file is opened in a mode that does not allow its later use."""

from __future__ import annotations

from collections.abc import Mapping

from epochzero.check.program.events import Called
from epochzero.check.program.values import Constant, Instance, Value
from epochzero.check.rule import Case, Claims, JobView, Rule, claim_at, guarded

_WANTED: Mapping[str, tuple[int, str, str]] = {
    "pickle.dump": (1, "wb", "TypeError: write() argument must be str, not bytes"),
    "pickle.load": (0, "rb", "UnicodeDecodeError, or TypeError: a bytes-like object is required"),
    "torch.load": (0, "rb", "UnicodeDecodeError: 'utf-8' codec can't decode"),
    "tomllib.load": (0, "rb", "TypeError: File must be opened in binary mode"),
    "json.dump": (1, "w", "TypeError: a bytes-like object is required, not 'str'"),
    "builtins.open().write": (-1, "w", "io.UnsupportedOperation: not writable"),
    "builtins.open().writelines": (-1, "w", "io.UnsupportedOperation: not writable"),
    "builtins.open().read": (-1, "r", "io.UnsupportedOperation: not readable"),
    "builtins.open().readlines": (-1, "r", "io.UnsupportedOperation: not readable"),
}
"""The argument that is the open file (-1: the file's own method), the required mode, and the error."""


def _check(view: JobView) -> Claims:
    for call in view.calls:
        if call.name not in _WANTED or not call.complete:
            continue
        at, wanted, error = _WANTED[call.name]
        mode = _mode(_file(call, at))
        if mode is None or _fits(mode, wanted, is_method=at == -1):
            continue
        if guarded(call.at, TypeError, ValueError, OSError):
            continue
        yield claim_at(
            call.at,
            message=f"The file is opened with mode {mode!r}, but {_shown(call)} requires {wanted!r}.",
            consequence=error,
            fix=f"Open it with mode {wanted!r}.",
        )


def _file(call: Called, at: int) -> Value | None:
    if at == -1:
        return call.receiver
    return call.arguments[at] if at < len(call.arguments) else call.keywords.get("file")


def _mode(file: Value | None) -> str | None:
    """The mode in which a file was opened; None if it is unknown or the object is not a file."""
    if not isinstance(file, Instance) or file.made_by != "builtins.open":
        return None
    given = file.arguments[1] if len(file.arguments) > 1 else file.keywords.get("mode")
    if given is None:
        return "r"
    return given.value if isinstance(given, Constant) and isinstance(given.value, str) else None


def _fits(mode: str, wanted: str, *, is_method: bool) -> bool:
    directions = "r+" if wanted[0] == "r" else "wax+"
    same_kind = is_method or ("b" in mode) == ("b" in wanted)
    return same_kind and any(direction in mode for direction in directions)


def _shown(call: Called) -> str:
    return call.name.removeprefix("builtins.").replace("().", ".")


RULE = Rule(
    title="A file is opened in the wrong mode",
    category="illegal_argument",
    why="Pickle needs a binary file and JSON a text file, and a file opened for reading cannot "
    "be written. What the job writes at its end fails after all its work.",
    fix="Open the file in the mode that the call requires.",
    source="Python documentation, io, 'Text I/O' and 'Binary I/O'; pickle.dump; json.dump",
    check=_check,
    examples=r"""
            import pickle
            with open('a.pkl', 'w') as file:
                pickle.dump({}, file)  # <-
            ----
            import pickle
            with open('a.pkl', 'r') as file:
                pickle.load(file)  # <-
            ==> a.pkl <==
            x
            \ No newline at end of file
            ----
            import json
            json.dump({}, open('a.json', 'wb'))  # <-
            ----
            with open('a.txt', 'w') as file:
                text = file.read()  # <-
            ----
            open('a.txt').write('x')  # <-
            ==> a.txt <==
            ----
            import pickle
            with open('a.pkl', 'wb') as file:
                pickle.dump({}, file)
            ----
            with open('a.txt', 'rb') as file:
                text = file.read()
            ==> a.txt <==
            x
            \ No newline at end of file
            ---- ignored if
            -with open('a.txt', 'rb') as file:
            +with open('a.txt', 'r+') as file:
            ----
            import json
            json.dump({}, open('a.json', 'w'))
        """,
    further_cases=(
        Case(
            {
                "train.py": "import pickle\nwith open('a.pkl', 'rb') as file:\n    pickle.load(file)\n",
                "a.pkl": "\x80\x04N.",
            }
        ),
    ),
)
