"""Trains the learned ranking and writes ``src/epochzero/locate/ranker.json``.

    python bench/localization.py --repos DIR      # makes the features, and measures across projects
    python bench/train_ranker.py --repos DIR

It learns from all bugs whose repository is in DIR; what the benchmark reports comes from models
that never saw the project in question, so none of its numbers is this model's own.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from learning_to_rank import ROUNDS, SETTINGS, fit
from localization import examples_of, options_of

from epochzero.locate.ranker import Trees

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/locate/ranker.json"


def main() -> None:
    """Trains on everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    options = options_of(parser)
    examples = [measured.example for measured in examples_of(options)]
    trees = fit(examples)
    projects = Counter(example.project for example in examples)
    card = {
        "trained_on": {
            "data": "Denchmark (Kim et al., MSR 2021): bug reports of deep-learning projects",
            "bugs": len(examples),
            "projects": dict(sorted(projects.items())),
            "settings": SETTINGS,
            "rounds": ROUNDS,
        },
        "never": "Projects that are not named here; anything but Python; comments on the reports.",
        "measured": "bench/results/localization.json, by models that left the project out",
        "features": trees.names,
        "trees": as_lists(trees),
    }
    TARGET.write_text(json.dumps(card, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{len(examples)} bugs of {len(projects)} projects -> {TARGET} ({TARGET.stat().st_size})")


def as_lists(trees: Trees) -> list[list[list[float]]]:
    """The nodes of each tree, short enough for a file."""
    found = []
    for tree in range(len(trees.feature)):
        nodes: list[list[float]] = []
        for place in range(trees.feature.shape[1]):
            left, right = int(trees.left[tree, place]), int(trees.right[tree, place])
            if left == right:
                nodes.append([round(float(trees.value[tree, place]), 5)])
            else:
                threshold = float(f"{trees.threshold[tree, place]:.6g}")
                nodes.append([int(trees.feature[tree, place]), threshold, left, right])
        found.append(nodes)
    return found


if __name__ == "__main__":
    main()
