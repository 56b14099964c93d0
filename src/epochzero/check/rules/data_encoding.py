"""A text file has another encoding than the program expects."""

from epochzero.check.paths.faults import Faulty, encoding_of
from epochzero.check.rule import Case, Rule
from epochzero.check.rules.path_claims import data_check


def _fix(faulty: Faulty) -> str:
    asked = encoding_of(faulty.access) or "utf-8"
    return (
        f"Pass the encoding of {faulty.shown} (usually encoding='latin-1' or 'cp1252'), or "
        f"convert the file to {asked} once."
    )


RULE = Rule(
    category="unexpected_encoding",
    why="A single line in another encoding, such as a line with an accented character, stops the "
    "reader in the middle of a corpus.",
    fix="Pass the encoding of the file to the reader.",
    source="Zhang et al., ICSE 2020, Table 1: Unexpected Encoding",
    check=data_check("encoding", _fix),
    examples=r"""
            text = open('a.txt', encoding='ascii').read()  # <-
            ==> a.txt <==
            café
            ---- ignored if
            -text = open('a.txt', encoding='ascii').read()
            +text = open('a.txt').read()
            ---- ignored if
            -text = open('a.txt', encoding='ascii').read()
            +data = open('a.txt', 'rb').read()
            ---- ignored if
            -text = open('a.txt', encoding='ascii').read()
            +open('a.txt', encoding='ascii', errors='replace').read()
            ----
            import pandas as pd
            pd.read_csv('a.csv', encoding='ascii')  # <-
            ==> a.csv <==
            a
            café
            ----
            for line in open('a.txt', 'r', -1, 'ascii'):  # <-
                print(line)
            ==> a.txt <==
            ß
            \ No newline at end of file
        """,
    further_cases=(
        Case(
            {
                "train.py": "from pathlib import Path\ntext = Path('a.txt').read_text(encoding='ascii')\n",
                "a.txt": "x\n" * 200_000 + "ü\n",
            },
            line=2,
        ),
    ),
)
