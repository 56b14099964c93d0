"""Trains DNNLOC's network and writes ``src/epochzero/locate/techniques/dnnloc.json``.

    python bench/dnnloc.py --repos DIR            # measures it across projects
    python bench/train_dnnloc.py --repos DIR

It learns from all bugs whose repository is in DIR; what the benchmark reports comes from networks
that never saw the project in question, so none of its numbers is this network's own.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter

from common import REPOSITORY
from dnnloc import SETTINGS, examples_of, fit, jobs_of, vocabularies
from localization import options_of

TARGET = REPOSITORY / "src/epochzero/locate/techniques/dnnloc.json"


def main() -> None:
    """Trains on everything."""
    options = options_of(argparse.ArgumentParser(description=__doc__))
    jobs = jobs_of(options)
    learned, vocabulary = vocabularies(jobs)
    examples = examples_of(jobs, vocabulary, options.work)
    projects = Counter(example.project for example in examples)
    card = {
        "trained_on": {
            "data": "Denchmark (Kim et al., MSR 2021): bug reports of deep-learning projects",
            "bugs": len(examples),
            "projects": dict(sorted(projects.items())),
            "settings": SETTINGS,
        },
        "never": "Projects that are not named here; anything but Python; comments on the reports.",
        "measured": "bench/results/localization_dnnloc.json, by networks that left the project out",
        "network": fit(examples, vocabulary, learned[None]).as_json(),
    }
    TARGET.write_text(json.dumps(card, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{len(examples)} bugs of {len(projects)} projects -> {TARGET} ({TARGET.stat().st_size})")


if __name__ == "__main__":
    main()
