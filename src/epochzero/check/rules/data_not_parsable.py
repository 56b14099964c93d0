"""A data file does not have the format that the program expects."""

from __future__ import annotations

from epochzero.check.paths.faults import Faulty, data_check
from epochzero.check.rules.base import Case, Rule


def _fix(faulty: Faulty) -> str:
    if "Git LFS" in faulty.fault.what:
        return f"Download the file: git lfs pull --include {faulty.shown}"
    if "JSON lines" in faulty.fault.what:
        return "Read the file line by line, with json.loads for each line."
    return f"Correct {faulty.shown}, or read it in its actual format."


_LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0a1b\nsize 1234567\n"
_JSON = "import json\nwith open('a.json') as file:\n    items = json.load(file)\n"
_LINES = (
    "import json\n\nwith open('a.jsonl') as file:\n    items = [json.loads(line) for line in file]\n",
    "import json\nitems = []\nfor line in open('a.jsonl'):\n    items.append(json.loads(line.strip()))\n",
    "import json\ndef items():\n    for at, line in enumerate(open('a.jsonl')):\n"
    "        yield at, json.loads(line)\nprint(list(items()))\n",
)
_BROKEN = '{"a": 1}\n{"a": 2\n{"a": 3}\n'
_WHOLE = '{"a": 1}\n{"a": 2}\n'
_CSV = "import pandas as pd\nframe = pd.read_csv('a.csv')\n"

RULE = Rule(
    title="A data file does not have the format that the program expects",
    category="corrupt_data",
    why="The file is a Git LFS pointer, a web page that was saved instead of a download, or has "
    "an error in one line. Reading it ends the job.",
    fix="Correct the file, or read it in its actual format.",
    source="Zhang et al., ICSE 2020, section 4.4: Corrupt Data",
    check=data_check("not-parsable", _fix),
    catches=(
        Case({"train.py": "import torch\ntorch.load('w.pt')\n", "w.pt": _LFS}, line=2),
        Case({"train.py": "rows = open('a.txt').readlines()\n", "a.txt": _LFS}, line=1),
        Case({"train.py": _JSON, "a.json": '{"a": 1}\n{"a": 2}\n'}, line=3),
        Case({"train.py": _JSON, "a.json": '{"a": 1,}\n'}, line=3),
        Case({"train.py": _CSV, "a.csv": "a,b\n1,2\n1,2,3\n"}, line=2),
        Case(
            {
                "train.py": "import yaml\ncfg = yaml.safe_load(open('a.yaml'))\n",
                "a.yaml": "a: [1, 2\nb: 3\n",
            },
            line=2,
        ),
        Case(
            {
                "train.py": "import numpy as np\nx = np.load('x.npy')\n",
                "x.npy": "<!DOCTYPE html><html>not found</html>",
            },
            line=2,
        ),
        *(Case({"train.py": one, "a.jsonl": _BROKEN}, line=4) for one in _LINES),
    ),
    leaves=(
        *(Case({"train.py": one, "a.jsonl": _WHOLE}) for one in _LINES),
        Case(
            {
                "train.py": "import json\nitems = []\nfor line in open('a.jsonl'):\n    try:\n"
                "        items.append(json.loads(line))\n    except ValueError:\n        pass\n",
                "a.jsonl": _BROKEN,
            }
        ),
        Case({"train.py": _JSON, "a.json": '{"a": [1, 2.5, null]}\n'}),
        Case({"train.py": _CSV, "a.csv": "a,b\n1,2\n3,4\n"}),
        Case({"train.py": _CSV, "a.csv": 'a,b\n1,"x, y"\n3,4\n'}),
        Case(
            {
                "train.py": "import pandas as pd\npd.read_csv('a.csv', sep=';')\n",
                "a.csv": "a;b\n1,5;2\n1,5,5;3\n",
            }
        ),
        Case({"train.py": "data = open('a.json').readlines()\n", "a.json": '{"a": 1}\n{"a": 2}\n'}),
        Case(
            {
                "train.py": "import json\ntry:\n    items = json.load(open('a.json'))\n"
                "except ValueError:\n    items = []\n",
                "a.json": "{",
            }
        ),
    ),
)
