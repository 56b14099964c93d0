"""Find the newest checkpoint in the run folder and go on from there."""
import re
import sys
from pathlib import Path

import numpy as np


def step_of(path):
    return int(re.search(r"step[_-](\d+)\.npz$", path.name).group(1))


def newest(folder):
    return max(folder.glob("*.npz"), key=step_of)


def earlier_run(folder):
    """What yesterday's job left behind."""
    folder.mkdir(exist_ok=True)
    for name in ("step_0", "step_100", "step_200", "final"):
        np.savez(folder / f"{name}.npz", weights=np.zeros(8))


def main(folder):
    earlier_run(folder)
    print("looking for the newest checkpoint in", folder)
    path = newest(folder)
    print("fine-tuning from", path)
    weights = np.load(path)["weights"]
    for step in range(50):
        weights += 0.1 * (1 - weights)
    print("norm", np.linalg.norm(weights))


main(Path(sys.argv[1] if len(sys.argv) > 1 else "run"))
