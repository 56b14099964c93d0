"""Customer tables and the summary that is sent to the business side."""

import numpy as np
import pandas as pd

FEATURES = ["tenure", "calls", "charges", "complaints"]


def customers(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "tenure": rng.integers(1, 72, rows),
            "calls": rng.poisson(3, rows),
            "charges": rng.gamma(2.0, 30.0, rows),
            "complaints": rng.poisson(0.4, rows),
            "region": rng.choice(["north", "south", "east", "west"], rows),
        }
    )
    risk = 0.8 * frame.complaints + 0.01 * frame.charges - 0.05 * frame.tenure
    frame["left"] = (risk + rng.normal(0, 0.5, rows) > 0).astype(int)
    return frame


def split(frame: pd.DataFrame, share: float = 0.8):
    order = np.random.default_rng(1).permutation(len(frame))
    cut = int(len(frame) * share)
    return frame.iloc[order[:cut]], frame.iloc[order[cut:]]


def by_region(frame: pd.DataFrame, scores: np.ndarray) -> pd.DataFrame:
    scored = frame.assign(score=scores, hit=(scores > 0.5) == frame["left"])
    return scored.groupby("region").agg(
        customers=("left", "size"), rate=("left", "mean"), accuracy=("hit", "mean")
    )


def deliver(summary: pd.DataFrame, folder) -> None:
    summary.to_csv(folder / "summary.csv")
    summary.round(3).to_excel(folder / "summary.xlsx", sheet_name="regions")
