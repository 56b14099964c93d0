"""``python -m epochzero`` is the command ``epochzero``."""

from epochzero.cli import main

main()
