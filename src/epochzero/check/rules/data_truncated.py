"""A data file is cut off."""

from __future__ import annotations

from epochzero.check.paths.faults import Faulty, data_check
from epochzero.check.rules.base import Case, Rule


def _fix(faulty: Faulty) -> str:
    return f"Copy {faulty.shown} again, and compare its size or checksum with the original."


_JSON = "import json\nwith open('a.json') as file:\n    items = json.load(file)\n"
_CSV = "import pandas as pd\nframe = pd.read_csv('a.csv')\n"
_ZIP = "PK\x03\x04" + "x" * 99
_LINES = "import pandas as pd\npd.read_json('a.jsonl', lines=True)\n"

RULE = Rule(
    title="A data file is cut off",
    category="corrupt_data",
    why="An interrupted download or copy leaves a file that looks complete in a listing. The job "
    "fails when it reads the end of the file.",
    fix="Copy the file again, and compare its size or checksum with the original.",
    source="Zhang et al., ICSE 2020, section 4.4: truncated JSON",
    check=data_check("truncated", _fix),
    catches=(
        Case({"train.py": _JSON, "a.json": '{"images": [{"id": 1}, {"id": 2'}, line=3),
        Case({"train.py": _CSV, "a.csv": "a,b,c\n1,2,3\n4,5"}, line=2),
        Case({"train.py": "import torch\ntorch.load('w.pt')\n", "w.pt": _ZIP}, line=2),
        Case(
            {
                "train.py": "import pandas as pd\npd.read_parquet('a.parquet')\n",
                "a.parquet": "PAR1" + "x" * 99,
            },
            line=2,
        ),
        Case({"train.py": _LINES, "a.jsonl": '{"a": 1}\n{"a": '}, line=2),
    ),
    leaves=(
        Case({"train.py": _JSON, "a.json": '{"images": [{"id": 1}, {"id": 2}]}'}),
        Case({"train.py": _CSV, "a.csv": "a,b,c\n1,2,3\n4,5,6"}),
        Case({"train.py": _LINES, "a.jsonl": '{"a": 1}\n{"a": 2}'}),
        Case({"train.py": "size = len(open('w.pt', 'rb').read())\n", "w.pt": _ZIP}),
    ),
)
