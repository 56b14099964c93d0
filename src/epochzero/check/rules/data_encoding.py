"""A text file has another encoding than the program expects."""

from __future__ import annotations

from epochzero.check.paths.faults import Faulty, data_check, encoding_of
from epochzero.check.rules.base import Case, Rule


def _fix(faulty: Faulty) -> str:
    asked = encoding_of(faulty.access) or "utf-8"
    return (
        f"Pass the encoding of {faulty.shown} (usually encoding='latin-1' or 'cp1252'), or "
        f"convert the file to {asked} once."
    )


_ASCII = "text = open('a.txt', encoding='ascii').read()\n"
_LINES = "for line in open('a.txt', 'r', -1, 'ascii'):\n    print(line)\n"

RULE = Rule(
    title="A text file has another encoding than the program expects",
    category="unexpected_encoding",
    why="One line with an accented character in another encoding stops the reader in the middle "
    "of a corpus.",
    fix="Pass the encoding of the file.",
    source="Zhang et al., ICSE 2020, Table 1: Unexpected Encoding",
    check=data_check("encoding", _fix),
    catches=(
        Case({"train.py": _ASCII, "a.txt": "café\n"}, line=1),
        Case(
            {
                "train.py": "import pandas as pd\npd.read_csv('a.csv', encoding='ascii')\n",
                "a.csv": "a\ncafé\n",
            },
            line=2,
        ),
        Case(
            {
                "train.py": "from pathlib import Path\n"
                "text = Path('a.txt').read_text(encoding='ascii')\n",
                "a.txt": "x\n" * 200_000 + "ü\n",
            },
            line=2,
        ),
        Case({"train.py": _LINES, "a.txt": "ß"}, line=1),
    ),
    leaves=(
        Case({"train.py": "text = open('a.txt').read()\n", "a.txt": "café\n"}),
        Case({"train.py": "data = open('a.txt', 'rb').read()\n", "a.txt": "café\n"}),
        Case({"train.py": _ASCII, "a.txt": "cafe\n"}),
        Case(
            {
                "train.py": "open('a.txt', encoding='ascii', errors='replace').read()\n",
                "a.txt": "café\n",
            }
        ),
        Case({"train.py": "open('a.txt', encoding='latin-1').read()\n", "a.txt": "café\n"}),
    ),
)
