"""Projects that are made to be hard to read: how long a check takes must stay within bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["STRANGE", "write_strange"]

_CLASS = """class C{0}:
    def run(self, x):
        y = self.step{0}(x)
        z = helper(y)
        return z[0]

    def step{0}(self, x):
        return x if x else None

"""


def _long() -> Mapping[str, str]:
    classes = "".join(_CLASS.format(number) for number in range(11_111))
    return {"train.py": f"def helper(x):\n    return x\n\n{classes}"}


def _undefined() -> Mapping[str, str]:
    return {"train.py": "".join(f"print(missing{number})\n" for number in range(20_000))}


def _many() -> Mapping[str, str]:
    module = "import os\n\ndef join(x):\n    return os.path.join(x, '{0}')\n"
    files = {f"pkg/m{number}.py": module.format(number) for number in range(5_000)}
    imports = "".join(f"from pkg import m{number}\n" for number in range(5_000))
    return {"train.py": f"{imports}print(m1.join('a'))\n", "pkg/__init__.py": "", **files}


def _line() -> Mapping[str, str]:
    return {"train.py": f"x = [{', '.join(['1.5'] * 400_000)}]\nprint(len(x))\n"}


def _deep() -> Mapping[str, str]:
    statements = (
        f"x = {'(' * 150}1{')' * 150}",
        f"y = {'-' * 900}1",
        f"z = {' + '.join(['1'] * 2_900)}",
        *(f"{' ' * depth}if x:" for depth in range(95)),
        f"{' ' * 95}print(y, z)",
    )
    return {"train.py": "\n".join([*statements, ""])}


STRANGE: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "100,000 lines": _long,
    "20,000 errors": _undefined,
    "5,000 modules": _many,
    "a line of 2 MB": _line,
    "nested deep": _deep,
}
"""Their files, by what is hard."""


def write_strange(folder: Path, name: str) -> None:
    """Writes one of them, whose entry point is ``train.py``."""
    for path, text in STRANGE[name]().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
