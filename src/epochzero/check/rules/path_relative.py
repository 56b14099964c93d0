"""A relative path is resolved in the wrong directory."""

from epochzero.check.paths.analysis import AccessProblem, PathAnalysis
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import Texts, path_check


def _describe(problem: AccessProblem, paths: PathAnalysis) -> Texts:
    shown = paths.platform.shown(problem.path)
    return (
        f"{problem.access.function} reads {shown} relative to the directory in which the job "
        f"starts, but the file is next to the script: {problem.detail}.",
        f"FileNotFoundError: No such file or directory: '{shown}'",
        "Start the job in the directory of the script, or build the path from "
        "Path(__file__).resolve().parent.",
    )


RULE = Rule(
    category="path_not_found",
    why="Python resolves a relative path against the working directory of the job, not against the "
    "directory of the script. Launchers, batch systems and editors often start a program in "
    "different directories.",
    fix="Build the path from Path(__file__).resolve().parent, or start the job in the directory "
    "of the script.",
    source="Zhang et al., ICSE 2020, section 4.2: Path Not Found",
    check=path_check("path-relative", _describe),
    examples="""
        $ python src/train.py
        ==> train.py <==
        ==> src/train.py <==
        import json
        with open('config.json') as file:  # <-
            settings = json.load(file)
        ==> src/config.json <==
        {}
        ----
        import os

        os.makedirs('run', exist_ok=True)
        os.chdir('run')
        import json
        with open('config.json') as file:  # <-
            settings = json.load(file)
        ==> config.json <==
        {}
        ----
        import os
        from pathlib import Path

        os.chdir(Path('out'))
        words = Path('words.txt').read_text()  # <-
        ==> out/old.txt <==
        x
        ==> words.txt <==
        x
        ----
        import os

        os.makedirs('run', exist_ok=True)
        os.chdir('run')
        from torchvision import datasets
        data = datasets.ImageFolder('images')  # <-
        ==> images/cat/1.png <==
        x
        ----
        from pathlib import Path
        text = (Path(__file__).parent / 'config.json').read_text()
        ==> config.json <==
        {}
        ----
        import os
        os.path.exists('config.json')
        ----
        open('/etc/hostname').read()
    """,
)
