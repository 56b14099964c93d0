"""Gradient boosting baseline for the leaf data."""

import json
from pathlib import Path

import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

DATA = Path(__file__).resolve().parent / "data"
FEATURES = ["length", "width", "height"]
TARGET = "label"


def read(name):
    table = pd.read_csv(DATA / name)
    missing = set(FEATURES + [TARGET]) - set(table.columns)
    if missing:
        raise SystemExit(f"{name} lacks {sorted(missing)}")
    return table[FEATURES], table[TARGET]


def build(n_estimators=200, learning_rate=0.05):
    return make_pipeline(
        StandardScaler(),
        GradientBoostingClassifier(
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            max_depth=3,
            random_state=0,
        ),
    )


def report(name, model, features, labels):
    predicted = model.predict(features)
    scores = {
        "accuracy": accuracy_score(labels, predicted),
        "f1": f1_score(labels, predicted, zero_division=0),
    }
    print(name, json.dumps(scores))
    return scores


def main():
    train_x, train_y = read("Train.csv")
    test_x, test_y = read("test.csv")
    model = build()
    model.fit(train_x, train_y)
    report("train", model, train_x, train_y)
    report("test", model, test_x, test_y)


if __name__ == "__main__":
    main()
