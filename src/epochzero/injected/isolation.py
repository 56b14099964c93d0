"""Runs a program for ``python -I`` or ``-E``, which ignore PYTHONPATH, after the companions have begun.

``python -I isolation.py PROGRAM ARGUMENTS``, where the program is a script, ``-m MODULE`` or ``-c CODE``, as for Python.
"""

from __future__ import annotations

import os
import runpy
import sys

_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start", "sitecustomize.py")


def main() -> None:
    """Start the companions, then become the program."""
    runpy.run_path(_START)
    del sys.argv[0]
    program = sys.argv[0]
    isolated = sys.flags.isolated
    if not isolated:  # Python has put the directory of this file first.
        sys.path[0] = "" if program in ("-m", "-c") else os.path.dirname(os.path.abspath(program))
    if program == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif program == "-c":
        code = compile(sys.argv.pop(1), "<string>", "exec")
        exec(code, {"__name__": "__main__", "__builtins__": __builtins__})
    else:
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
