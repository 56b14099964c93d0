"""A small project with a bug, and corpora of files written on the spot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

from epochzero.code.parse import parse
from epochzero.locate.corpus import Corpus

if TYPE_CHECKING:
    from conftest import Made

LOADER = '''\
"""Reads shards of samples."""

import os


class ShardReader:
    """Opens the shards of a folder one by one."""

    def __init__(self, folder):
        self.folder = folder

    def read_shard(self, name):
        size = os.path.getsize(name)
        if size % 8:
            raise ValueError("the shard was cut off in the middle of a sample")
        return open(name, "rb").read()


def shuffle(samples, seed):
    # The order must differ between epochs.
    order = list(range(len(samples)))
    return order
'''
MODEL = '''\
"""A small network."""


class Network:
    def forward(self, batch):
        hidden = self.encoder(batch)
        return self.head(hidden)
'''
TRAIN = """\
from data.loader import ShardReader
from model import Network


def train(folder, epochs):
    reader = ShardReader(folder)
    for epoch in range(epochs):
        loss = step(reader, epoch)


def step(reader, epoch):
    optimizer = make_optimizer()
    return optimizer.step()
"""
FILES = {"src/data/loader.py": LOADER, "src/model.py": MODEL, "src/train.py": TRAIN}


@pytest.fixture
def corpus() -> Corpus:
    """The project's files."""
    return corpus_of(FILES)


@pytest.fixture
def make_corpus() -> Callable[[Mapping[str, str]], Corpus]:
    """Makes a corpus of texts by path."""
    return corpus_of


def corpus_of(files: Mapping[str, str]) -> Corpus:
    parsed = [parse(text.encode(), path) for path, text in files.items()]
    return Corpus(list(files), parsed)


@pytest.fixture
def project(made: Made) -> Made:
    """The project in a repository, with a test that is not searched, and a fix in its history."""
    for path, text in FILES.items():
        made.write(path, text)
    made.write("tests/test_loader.py", LOADER)
    made.write("README.md", "ShardReader reads shards.\n")
    made.commit("Begin")
    made.write("src/data/loader.py", LOADER.replace("% 8", "% 4"))
    made.commit("Something else")
    made.write("src/data/loader.py", LOADER)
    made.commit("Fix the check of truncated shards")
    return made
