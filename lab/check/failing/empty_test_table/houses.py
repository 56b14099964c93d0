"""House prices by gradient boosting."""

import argparse
from pathlib import Path

import joblib
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_absolute_error

COLUMNS = ["rooms", "area", "year"]


def split(folder, name):
    table = pd.read_csv(folder / f"{name}.csv")
    return table[COLUMNS], table["price"]


def fit(folder, iterations):
    features, prices = split(folder, "train")
    model = HistGradientBoostingRegressor(max_iter=iterations, learning_rate=0.05)
    model.fit(features, prices)
    print("training error", mean_absolute_error(prices, model.predict(features)))
    return model


def test(model, folder):
    features, prices = split(folder, "test")
    return mean_absolute_error(prices, model.predict(features))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--save", default="houses.joblib")
    args = parser.parse_args()
    model = fit(args.data, args.iterations)
    joblib.dump(model, args.save)
    print("test error", test(model, args.data))


if __name__ == "__main__":
    main()
