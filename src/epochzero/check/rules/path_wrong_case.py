"""A path differs in case from the name on disk."""

from epochzero.check.paths.analysis import AccessProblem, PathAnalysis
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import Texts, path_check


def _describe(problem: AccessProblem, paths: PathAnalysis) -> Texts:
    shown = paths.platform.shown(problem.path)
    return (
        f"{problem.access.function} reads {shown}, but the existing name is {problem.detail}.",
        f"FileNotFoundError: No such file or directory: '{shown}'",
        f"Write {problem.detail}.",
    )


RULE = Rule(
    category="path_not_found",
    why="By default, macOS and Windows treat Train.csv and train.csv as the same name. Linux "
    "distinguishes the two names. A program can work on the author's machine and fail on the "
    "target.",
    fix="Write each name exactly as it appears on disk.",
    source="Zhang et al., ICSE 2020, section 4.2: differences between the local machine and the "
    "platform",
    check=path_check("path-wrong-case", _describe),
    examples="""
        import pandas as pd
        frame = pd.read_csv('Data/train.csv')  # <-
        ==> data/train.csv <==
        a
        1
        ---- ignored if
        -==> data/train.csv <==
        +==> other/train.csv <==
        ---- ignored if
        -==> data/train.csv <==
        +==> Data/train.csv <==
        ----
        from pathlib import Path
        text = (Path('cfg') / 'Base.json').read_text()  # <-
        ==> cfg/base.json <==
        {}
        ----
        import torch
        torch.load('/models/Best.pt')  # <-
        ==> target.toml <==
        [files]
        "/models/Best.pt" = false
        "/models/best.pt" = true
        ---- ignored if
        -"/models/Best.pt" = false
        +"/models/Best.pt" = true
    """,
)
