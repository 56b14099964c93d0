"""A data file or directory is empty."""

from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import data_check

RULE = Rule(
    category="corrupt_data",
    why="A program can create a file but never fill it, and a path pattern may match no files. The "
    "job either terminates at the read or continues without data.",
    fix="Write data to the file, or pass the correct path of the data.",
    source="Zhang et al., ICSE 2020, section 4.4: Corrupt Data",
    check=data_check(
        "empty",
        lambda faulty: f"Fill {faulty.shown}, or pass the correct path of the data.",
    ),
    examples=r"""
        import pandas as pd
        pd.read_csv('a.csv')  # <-
        ==> a.csv <==
        ---- ignored if
         ==> a.csv <==
        +a,b
        +1,2
        ---- ignored if
        -pd.read_csv('a.csv')
        +from pandas.errors import EmptyDataError
        +try:
        +    pd.read_csv('a.csv')
        +except EmptyDataError:
        +    pass
        ----
        import json
        settings = json.load(open('a.json'))  # <-
        ==> a.json <==
        ----
        from pathlib import Path
        files = sorted(Path('data').glob('*/*.png'))  # <-
        ==> data/0/a.jpg <==
        x
        \ No newline at end of file
        ---- caught if
        -files = sorted(Path('data').glob('*/*.png'))  # <-
        +files = sorted(Path('data').glob('*/*.png'))
        +last = files[-1]  # <-
        ---- ignored if
        -==> data/0/a.jpg <==
        +==> data/0/a.png <==
        ---- ignored if
        +open('data/0/a.png', 'w').write('x')
         from pathlib import Path
        @@
        -==> data/0/a.jpg <==
        +==> data/0/b.txt <==
        ----
        from torchvision.datasets import ImageFolder
        data = ImageFolder('images')  # <-
        ==> images/readme.txt <==
        x
        \ No newline at end of file
        ----
        text = open('notes.txt').read()
        ==> notes.txt <==
        ----
        import glob
        import torch

        for epoch in range(9):
            torch.save({}, f'runs/{epoch}.pt')
        last = sorted(glob.glob('runs/*.pt'))[-1]
        ==> runs/notes.txt <==
        x
        \ No newline at end of file
    """,
)
