"""A data file does not have the format that the program expects."""

from epochzero.check.paths.faults import Faulty
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import data_check


def _fix(faulty: Faulty) -> str:
    if "Git LFS" in faulty.fault.what:
        return f"Download the file: git lfs pull --include {faulty.shown}"
    if "JSON lines" in faulty.fault.what:
        return "Read the file line by line, with json.loads for each line."
    return f"Correct {faulty.shown}, or read it in its actual format."


RULE = Rule(
    category="corrupt_data",
    why="Often the file is a Git LFS pointer, is a web page that was saved instead of a download, "
    "or has an error in one line. The job terminates when it reads the file.",
    fix="Correct the file, or read the file in its actual format.",
    source="Zhang et al., ICSE 2020, section 4.4: Corrupt Data",
    check=data_check("not-parsable", _fix),
    examples=r"""
        import torch
        torch.load('w.pt')  # <-
        ==> w.pt <==
        version https://git-lfs.github.com/spec/v1
        oid sha256:0a1b
        size 1234567
        ----
        rows = open('a.txt').readlines()  # <-
        ==> a.txt <==
        version https://git-lfs.github.com/spec/v1
        oid sha256:0a1b
        size 1234567
        ----
        import json
        with open('a.json') as file:
            items = json.load(file)  # <-
        ==> a.json <==
        {"a": 1,}
        ---- caught if
        -{"a": 1,}
        +{"a": 1}
        +{"a": 2}
        ---- ignored if
        -{"a": 1,}
        +{"a": [1, 2.5, null]}
        ----
        import pandas as pd
        frame = pd.read_csv('a.csv')  # <-
        ==> a.csv <==
        a,b
        1,2
        1,2,3
        ---- ignored if
        -1,2,3
        +3,4
        ---- ignored if
        -1,2
        -1,2,3
        +1,"x, y"
        +3,4
        ----
        import yaml
        cfg = yaml.safe_load(open('a.yaml'))  # <-
        ==> a.yaml <==
        a: [1, 2
        b: 3
        ----
        import numpy as np
        x = np.load('x.npy')  # <-
        ==> x.npy <==
        <!DOCTYPE html><html>not found</html>
        \ No newline at end of file
        ----
        import json
        items = []
        for line in open('a.jsonl'):
            items.append(json.loads(line.strip()))  # <-
        ==> a.jsonl <==
        {"a": 1}
        {"a": 2
        {"a": 3}
        ---- caught if
        -items = []
        -for line in open('a.jsonl'):
        -    items.append(json.loads(line.strip()))  # <-
        +
        +with open('a.jsonl') as file:
        +    items = [json.loads(line) for line in file]  # <-
        ---- ignored if
        -    items.append(json.loads(line.strip()))
        +    try:
        +        items.append(json.loads(line))
        +    except ValueError:
        +        pass
        ----
        import json
        def items():
            for at, line in enumerate(open('a.jsonl')):
                yield at, json.loads(line)
        print(list(items()))
        ==> a.jsonl <==
        {"a": 1}
        {"a": 2}
        ----
        import pandas as pd
        pd.read_csv('a.csv', sep=';')
        ==> a.csv <==
        a;b
        1,5;2
        1,5,5;3
        ----
        import json
        try:
            items = json.load(open('a.json'))
        except ValueError:
            items = []
        ==> a.json <==
        {
        \ No newline at end of file
    """,
)
