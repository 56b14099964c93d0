import numpy as np
import pandas as pd


def load(days: int, seed: int = 0) -> pd.Series:
    """Daily demand with a weekly wave and some days missing."""
    rng = np.random.default_rng(seed)
    index = pd.date_range("2024-01-01", periods=days, freq="D")
    values = 100 + 20 * np.sin(2 * np.pi * np.arange(days) / 7) + rng.normal(0, 3, days)
    return pd.Series(values, index=index, name="demand")


def windows(series: pd.Series, past: int):
    values = series.to_numpy(dtype=np.float32)
    x = np.lib.stride_tricks.sliding_window_view(values[:-1], past)
    return x.copy(), values[past:].copy()


def compare(truth: pd.Series, forecast: pd.Series) -> pd.DataFrame:
    """Errors by month; days without a forecast take the one before."""
    table = pd.DataFrame({"truth": truth, "forecast": forecast})
    table["forecast"] = table["forecast"].fillna(method="ffill")
    table["error"] = (table["truth"] - table["forecast"]).abs()
    return table.groupby(table.index.month)["error"].agg(["mean", "max"])
