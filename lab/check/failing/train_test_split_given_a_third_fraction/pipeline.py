"""Predicts churn from usage counts."""

import argparse

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

NUMBERS = ["minutes", "messages", "tickets"]
TEXTS = ["plan"]


def customers(rows, seed=0):
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "minutes": generator.gamma(2.0, 100.0, rows),
            "messages": generator.poisson(40, rows),
            "tickets": generator.poisson(1, rows),
            "plan": generator.choice(["basic", "plus", "family"], rows),
        }
    )
    risk = table["tickets"] - 0.004 * table["minutes"] + generator.normal(size=rows)
    table["left"] = (risk > 0.5).astype(int)
    return table


def split(table):
    features, target = table[NUMBERS + TEXTS], table["left"]
    return train_test_split(
        features,
        target,
        test_size=0.2,
        valid_size=0.1,
        random_state=1,
        stratify=target,
    )


def build():
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), NUMBERS),
            ("texts", OneHotEncoder(handle_unknown="ignore"), TEXTS),
        ]
    )
    return Pipeline([("columns", columns), ("forest", RandomForestClassifier(n_estimators=300))])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1000)
    args = parser.parse_args()
    train_x, test_x, train_y, test_y = split(customers(args.rows))
    model = build()
    model.fit(train_x, train_y)
    print(classification_report(test_y, model.predict(test_x)))


if __name__ == "__main__":
    main()
