"""The program reads a file before it writes it."""

from epochzero.check.paths.analysis import AccessProblem, PathAnalysis
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import Texts, path_check


def _describe(problem: AccessProblem, paths: PathAnalysis) -> Texts:
    shown = paths.platform.shown(problem.path)
    return (
        f"{problem.access.function} reads {shown}, which the program writes only later.",
        f"FileNotFoundError: No such file or directory: '{shown}'",
        f"Write {shown} first, or check that it exists before reading it.",
    )


RULE = Rule(
    category="path_not_found",
    why="On the author's machine, the file often exists from an earlier run. On a clean target, "
    "the first run fails.",
    fix="Write the file before reading it, or check that it exists.",
    source="Zhang et al., ICSE 2020, section 4.2: Path Not Found",
    check=path_check("path-read-before-written", _describe),
    examples="""
        import torch

        model = torch.nn.Linear(2, 2)
        model.load_state_dict(torch.load('best.pt'))  # <-
        torch.save(model, 'best.pt')
        ---- ignored if
        -model.load_state_dict(torch.load('best.pt'))
        -torch.save(model, 'best.pt')
        +for epoch in range(9):
        +    if epoch % 4 == 3:
        +        torch.load('last.pt')
        +    torch.save(model, 'last.pt')
        ---- ignored if
        -model.load_state_dict(torch.load('best.pt'))
        @@
         torch.save(model, 'best.pt')
        +torch.load('best.pt')
        ---- ignored if
        +import os
         import torch
        @@
        -model.load_state_dict(torch.load('best.pt'))
        +if os.path.exists('best.pt'):
        +    torch.load('best.pt')
        ----
        import json

        seen = json.load(open('seen.json'))  # <-
        with open('seen.json', 'w') as file:
            json.dump(seen, file)
        ----
        import numpy as np

        def mean():
            return np.load('mean.npy')  # <-

        def prepare():
            np.save('mean.npy', np.zeros(3))

        mean()
        prepare()
        ----
        from pathlib import Path

        vocabulary = Path('vocab.txt')
        words = vocabulary.read_text().split()  # <-
        vocabulary.write_text(' '.join(words))
        ----
        import json

        try:
            seen = json.load(open('seen.json'))
        except OSError:
            seen = []
        json.dump(seen, open('seen.json', 'w'))
    """,
)
