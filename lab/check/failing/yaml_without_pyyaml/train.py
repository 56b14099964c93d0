"""Cross-validated linear models, chosen by a configuration."""

import argparse
import json

import numpy as np
import yaml
from sklearn.linear_model import Lasso, Ridge
from sklearn.model_selection import KFold, cross_val_score

MODELS = {"ridge": Ridge, "lasso": Lasso}


def make_data(rows=2000, columns=30, seed=0):
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(rows, columns))
    weights = generator.normal(size=columns) * (generator.random(columns) < 0.3)
    return features, features @ weights + generator.normal(scale=0.5, size=rows)


def load(path):
    with open(path) as handle:
        return yaml.safe_load(handle)


def evaluate(config):
    features, target = make_data()
    model = MODELS[config["model"]](alpha=config["alpha"])
    folds = KFold(n_splits=config["folds"], shuffle=True, random_state=0)
    scores = cross_val_score(model, features, target, cv=folds, scoring="r2")
    return {"mean": float(scores.mean()), "std": float(scores.std())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.yaml")
    args = parser.parse_args()
    print(json.dumps(evaluate(load(args.config)), indent=2))


if __name__ == "__main__":
    main()
