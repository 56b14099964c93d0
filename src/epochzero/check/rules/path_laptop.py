"""A path belongs to another machine."""

from epochzero.check.paths.analysis import AccessProblem, PathAnalysis
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import Texts, path_check


def _describe(problem: AccessProblem, paths: PathAnalysis) -> Texts:
    written = problem.access.text.known or f"{problem.access.text.beginning}..."
    target = paths.platform.target.name or "the target"
    return (
        f"{problem.access.function} uses {written}: {problem.detail}, which does not exist on "
        f"{target}.",
        f"FileNotFoundError: No such file or directory: '{written}'",
        "Take the path from an argument or an environment variable, or make it relative to "
        "the job directory.",
    )


RULE = Rule(
    category="path_not_found",
    why="Home directories of other machines, drive letters and directories of notebook services "
    "usually do not exist on a cluster. The program fails only when it reaches the line with such "
    "a path.",
    fix="Take the path from an argument or an environment variable.",
    source="Zhang et al., ICSE 2020, section 5.1: parameterise paths and verify them early",
    check=path_check("path-laptop", _describe),
    examples=r"""
        import numpy as np
        x = np.load('/Users/mara/data/x.npy')  # <-
        ----
        x = open('C:\\data\\train.txt').read()  # <-
        ----
        from PIL import Image
        Image.open('/kaggle/input/digits/0.png')  # <-
        ----
        import torch
        torch.load('/home/jonas/models/best.pt')
        ==> target.toml <==
        [user]
        name = "mara"
        uid = 1000
        home = "/home/mara"
        [[mounts]]
        path = "/home/jonas"
        writable = false
        ---- caught if
        -torch.load('/home/jonas/models/best.pt')
        +ROOT = '/home/jonas/runs'
        +model = torch.nn.Linear(2, 2)
        +for epoch in range(3):
        +    torch.save(model, f'{ROOT}/{epoch}.pt')  # <-
        @@
        -[[mounts]]
        -path = "/home/jonas"
        -writable = false
        ----
        import pandas as pd
        frame = pd.read_csv('/content/drive/MyDrive/train.csv')
        ==> target.toml <==
        [files]
        "/content/drive/MyDrive/train.csv" = true
        ----
        import torch
        torch.load('/home/jonas/models/best.pt')
        ----
        import os

        if os.path.isdir('/kaggle/input'):
            names = os.listdir('/kaggle/input')
    """,
)
