"""The function level: which functions the fix changed, ranked over all functions of the tree.

It starts from what ``bench/localization.py`` kept. A function that a fix changed is found in the
tree before by its name, of several of one name the one nearest to its line. The scores of files come
from models that never saw the project, and so do those of functions that are learned upon them.

    python bench/localization_functions.py --repos DIR
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from common import save
from learning_functions import FunctionExample, cross_validated, function_examples
from localization import REPORTED, options_of
from split import held

Ints = npt.NDArray[np.int64]

TOPS = (1, 5, 10)


def main() -> None:
    """Measures, prints the tables and keeps them."""
    parser = argparse.ArgumentParser(description=__doc__)
    options = options_of(parser)
    examples = function_examples(options)
    asked = [example for example in examples if example.project.lower() in REPORTED]
    learned = {example.bug: ranks for example, ranks in cross_validated(examples, asked)}
    methods = {name: [e.ranks[name] for e in asked] for name in asked[0].ranks}
    methods["learned"] = [learned[example.bug] for example in asked]
    tables = {
        part: {name: _table([ranks[n] for n in numbers]) for name, ranks in methods.items()}
        for part, numbers in _parts(asked).items()
    }
    for part in ("all", "not localized"):
        for name, numbers in tables[part].items():
            told = "  ".join(f"{key} {value}" for key, value in numbers.items())
            print(f"{part:16s}{name:24s}{told}")
    save(
        "localization_functions",
        {
            "bugs": len(asked),
            "learned_from": len(examples),
            "tables": tables,
            "features_median_s": round(statistics.median(e.seconds for e in asked), 4),
        },
        data=[options.data.described()],
    )


# -- Tables --------------------------------------------------------------------------------------


def _parts(asked: Sequence[FunctionExample]) -> Mapping[str, list[int]]:
    """The bugs of each table."""
    parts: defaultdict[str, list[int]] = defaultdict(list)
    for number, example in enumerate(asked):
        parts["all"].append(number)
        parts["held-out half" if held(example.bug) else "development half"].append(number)
        parts["localized" if example.localized else "not localized"].append(number)
        parts[f"project {example.project}"].append(number)
    return dict(sorted(parts.items()))


def _table(ranks: Sequence[Ints]) -> Mapping[str, float]:
    first = np.array([own[0] for own in ranks])
    last = np.array([own[-1] for own in ranks])
    precision = [float(np.mean(np.arange(1, len(own) + 1) / own)) for own in ranks]
    return {
        "bugs": len(ranks),
        **{f"any_{top}": round(float(np.mean(first <= top)), 4) for top in TOPS},
        **{f"all_{top}": round(float(np.mean(last <= top)), 4) for top in TOPS[1:]},
        "map": round(statistics.fmean(precision), 4),
        "mrr": round(float(np.mean(1 / first)), 4),
    }


if __name__ == "__main__":
    main()
