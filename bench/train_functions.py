"""Trains the learned ranking of functions and writes ``src/epochzero/locate/functions.json``.

    python bench/localization_functions.py --repos DIR    # makes the features, and measures
    python bench/train_functions.py --repos DIR

It learns from all bugs whose repository is in DIR; what the benchmark reports comes from models
that never saw the project in question, so none of its numbers is this model's own.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from learning_functions import FUNCTION_SETTINGS, ROUNDS, fit, function_examples
from localization import options_of
from train_ranker import as_lists

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/locate/functions.json"


def main() -> None:
    """Trains on everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    options = options_of(parser)
    examples = function_examples(options)
    trees = fit(examples)
    projects = Counter(example.project for example in examples)
    card = {
        "trained_on": {
            "data": "Denchmark (Kim et al., MSR 2021): bug reports of deep-learning projects",
            "bugs": len(examples),
            "projects": dict(sorted(projects.items())),
            "settings": FUNCTION_SETTINGS,
            "rounds": ROUNDS,
            "files": "scored by learned rankings that never saw the project",
        },
        "never": "Projects that are not named here; anything but Python; comments on the reports.",
        "measured": "bench/results/localization_functions.json, by models that left the project out",
        "features": trees.names,
        "trees": as_lists(trees),
    }
    TARGET.write_text(json.dumps(card, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{len(examples)} bugs of {len(projects)} projects -> {TARGET} ({TARGET.stat().st_size})")


if __name__ == "__main__":
    main()
