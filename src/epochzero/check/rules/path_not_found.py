"""A file or directory that the program reads does not exist."""

from epochzero.check.paths.analysis import AccessProblem, PathAnalysis
from epochzero.check.rule import Claims, JobView, Rule
from epochzero.check.rules.path_claims import Texts, path_check, where_searched


def _describe(problem: AccessProblem, paths: PathAnalysis) -> Texts:
    access, shown = problem.access, paths.platform.shown(problem.path)
    near = f"; a similar path is {problem.detail}" if problem.detail else ""
    ask = f"Did you mean {problem.detail}? " if problem.detail else ""
    if "\\" in problem.path and problem.detail:
        ask = f"Write {problem.detail}: only Windows accepts \\ as a path separator. "
    if access.text.beginning.startswith("~") and not access.text.home:
        ask = f"{access.function} does not expand ~: call os.path.expanduser on the path. "
    if access.does == "globs":
        consequence = (
            f"{access.function} would find no file, and the job would continue without data."
        )
    elif access.use.quiet:
        consequence = f"{access.function} would return no data, and the next step would fail."
    else:
        consequence = f"FileNotFoundError: No such file or directory: '{shown}'"
    return (
        f"{access.function} reads {shown}, which does not exist{near} (searched "
        f"{where_searched(paths, problem.path)}).",
        consequence,
        f"{ask}Copy {shown} to the machine that runs the job, or pass the correct path as an "
        "argument.",
    )


_missing = path_check("path-not-found", _describe)


def _check(view: JobView) -> Claims:
    yield from _missing(view)
    yield from view.paths.unknowns


RULE = Rule(
    category="path_not_found",
    why="A missing path is the most frequent cause of failure. If only the evaluation reads the "
    "missing file, the failure costs the whole training run.",
    fix="Copy the file to the target. Alternatively, take the path from an argument and check at "
    "startup that the file exists.",
    source="Zhang et al., ICSE 2020, Table 1: 39.4 % of 4,960 failures",
    check=_check,
    examples=r"""
        open('/data/val/x.csv').read()
        open('/data/test/x.csv').read()  # <-
        ==> target.toml <==
        listed = ["/data"]
        [files]
        "/data" = true
        "/data/val" = true
        ----
        import os
        import torch

        os.makedirs('out/checkpoints')
        model = torch.nn.Linear(8, 2)
        for epoch in range(6):
            torch.save(model.state_dict(), f'out/checkpoints/best_epoch{epoch}.pt')
        model.load_state_dict(torch.load('out/checkpoints/best.pt'))  # <-
        ----
        from pathlib import Path

        ROOT = Path(__file__).resolve().parent
        def labels():
            return (ROOT / 'labels.txt').read_text().split()  # <-

        print(labels())
        ----
        import numpy as np
        x = np.load('/data/x.npy')  # <-
        ==> target.toml <==
        [files]
        "/data/x.npy" = false
        ----
        for fold in range(5):
            open(f'folds/{fold}.txt').read()  # <-
        ----
        import pandas as pd
        pd.read_csv('data\\a.csv')  # <-
        ==> data/a.csv <==
        a
        1
        ----
        from datasets import load_dataset

        data = load_dataset('csv', data_files={'train': 'a.csv', 'test': 'b.csv'})  # <-
        ==> a.csv <==
        a
        1
        ----
        lines = open('~/data/train.txt').readlines()  # <-
        ----
        import glob
        import torch
        from torchvision import datasets
        files = sorted(glob.glob('frames/*.png'))  # <-
        ----
        from datasets import load_dataset
        load_dataset('user/reviews', data_files='b.csv')
        ----
        from datasets import load_dataset
        load_dataset('json', data_files=['shards/*.json'])
        ----
        import os
        import argparse
        from torchvision import datasets

        parser = argparse.ArgumentParser()
        parser.add_argument('--data', default=os.path.expanduser('~/images/train'))
        print(datasets.ImageFolder(parser.parse_args().data))
        ----
        import os

        if os.path.exists('vocab.txt'):
            words = open('vocab.txt').read()
        else:
            words = ''
        ----
        import json

        try:
            state = json.load(open('state.json'))
        except FileNotFoundError:
            state = {}
        ----
        import torch
        from torch import nn

        model = nn.Linear(2, 2)
        torch.save(model.state_dict(), 'model.pt')
        model.load_state_dict(torch.load('model.pt'))
        ----
        import gdown
        import torch

        gdown.download('https://example.org/w', 'weights/w.pt')
        torch.load('weights/w.pt')
        ----
        import subprocess
        import pandas as pd

        subprocess.run(['wget', 'https://example.org/data/train.csv'], check=True)
        frame = pd.read_csv('train.csv')
        ----
        from torchvision import datasets
        datasets.MNIST('mnist', download=True)
        ----
        import fire
        from library import prepare

        prepare(out_dir='prepared')
        text = open('prepared/train.txt').read()
    """,
)
