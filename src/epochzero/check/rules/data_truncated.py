"""A data file is cut off."""

from epochzero.check.rule import Case, Rule
from epochzero.check.rules.path_claims import data_check

RULE = Rule(
    category="corrupt_data",
    why="An interrupted download or copy leaves a file that looks complete in a directory "
    "listing. The job fails when it reads the end of the file.",
    fix="Copy the file again. Compare the size or checksum of the copy with that of the original.",
    source="Zhang et al., ICSE 2020, section 4.4: truncated JSON",
    check=data_check(
        "truncated",
        lambda faulty: (
            f"Copy {faulty.shown} again, and compare its size or checksum with the original."
        ),
    ),
    examples=r"""
            import json
            with open('a.json') as file:
                items = json.load(file)  # <-
            ==> a.json <==
            {"images": [{"id": 1}, {"id": 2
            \ No newline at end of file
            ---- ignored if
            -{"images": [{"id": 1}, {"id": 2
            +{"images": [{"id": 1}, {"id": 2}]}
            ----
            import pandas as pd
            frame = pd.read_csv('a.csv')  # <-
            ==> a.csv <==
            a,b,c
            1,2,3
            4,5
            \ No newline at end of file
            ---- ignored if
            -4,5
            +4,5,6
            ----
            import pandas as pd
            pd.read_parquet('a.parquet')  # <-
            ==> a.parquet <==
            PAR1xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            \ No newline at end of file
            ----
            import pandas as pd
            pd.read_json('a.jsonl', lines=True)  # <-
            ==> a.jsonl <==
            {"a": 1}
            {"a":
            \ No newline at end of file
            ---- ignored if
            -{"a":
            +{"a": 2}
        """,
    further_cases=(
        Case(
            {"train.py": "import torch\ntorch.load('w.pt')\n", "w.pt": "PK\x03\x04" + "x" * 99},
            line=2,
        ),
        Case(
            {"train.py": "size = len(open('w.pt', 'rb').read())\n", "w.pt": "PK\x03\x04" + "x" * 99}
        ),
    ),
)
