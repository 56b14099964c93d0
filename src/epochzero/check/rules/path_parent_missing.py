"""The program writes a file into a directory that does not exist."""

from epochzero.check.paths.analysis import AccessProblem, PathAnalysis
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import Texts, path_check


def _describe(problem: AccessProblem, paths: PathAnalysis) -> Texts:
    access, shown = problem.access, paths.platform.shown(problem.path)
    quiet = access.use.parent == "quiet"
    error = (
        f"RuntimeError: Parent directory {shown} does not exist."
        if access.call.name == "torch.save"
        else f"FileNotFoundError: No such file or directory: '{access.text.known or shown}'"
    )
    return (
        f"{access.function} writes into {shown}, which does not exist and is not created "
        "before this call.",
        f"{access.function} would write nothing, without an error." if quiet else error,
        f"Create the directory first: os.makedirs('{shown}', exist_ok=True).",
    )


RULE = Rule(
    category="path_not_found",
    why="The functions open, torch.save and to_csv do not create directories. On the author's "
    "machine, the directory often exists from earlier runs. On the target, the job may fail when "
    "it saves the first checkpoint.",
    fix="Create the directory at startup with os.makedirs(directory, exist_ok=True).",
    source="Zhang et al., ICSE 2020, Figure 10: 40 hours of 4 GPUs lost to a missing directory",
    check=path_check("path-parent-missing", _describe),
    examples="""
        import os
        import torch

        model = torch.nn.Linear(2, 2)
        for epoch in range(5):
            torch.save(model.state_dict(), f'checkpoints/{epoch}.pt')  # <-
        ---- ignored if
         model = torch.nn.Linear(2, 2)
        +os.makedirs('checkpoints', exist_ok=True)
        ---- ignored if
         model = torch.nn.Linear(2, 2)
        +if not os.path.exists('checkpoints'):
        +    os.makedirs('checkpoints')
        ---- caught if
        -for epoch in range(5):
        -    torch.save(model.state_dict(), f'checkpoints/{epoch}.pt')  # <-
        +best = 1.0
        +for epoch in range(9):
        +    loss = model(torch.randn(4, 2)).sum().item()
        +    if loss < best:
        +        torch.save(model, 'models/best.pt')  # <-
        ----
        import pandas as pd

        def report(frame):
            frame.describe().to_csv('reports/summary.csv')  # <-

        report(pd.DataFrame({'a': [1]}))
        ----
        with open('logs/run.log', 'a') as log:  # <-
            log.write('x')
        ----
        import logging
        logging.basicConfig(filename='logs/train.log', level=logging.INFO)  # <-
        ----
        import json
        import logging.config
        logging.config.dictConfig(json.load(open('logging.json')))  # <-
        ==> logging.json <==
        {"version": 1, "handlers": {"file": {"class": "logging.FileHandler", "filename": "logs/train.log"}}}
        ----
        from pathlib import Path
        Path('a/b/c').mkdir(exist_ok=True)  # <-
        ----
        $ bash run.sh
        open('out/x', 'w')  # <-
        ==> run.sh <==
        python train.py && mkdir -p out
        ---- ignored if
        -python train.py && mkdir -p out
        +mkdir -p out && python train.py
        ----
        from torch.utils.tensorboard import SummaryWriter
        writer = SummaryWriter('runs/first')
        open('runs/notes.txt', 'w').write('x')
        ----
        import subprocess
        subprocess.run(['mkdir', '-p', 'out'])
        open('out/x', 'w')
        ----
        open('/tmp/notes.txt', 'w').write('x')
    """,
)
