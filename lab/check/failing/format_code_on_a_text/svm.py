"""Compares support vector machines on two moons."""

import argparse
import itertools

from sklearn.datasets import make_moons
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

GRID = {"C": [0.1, 1.0, 10.0], "gamma": ["scale", "auto"]}


def candidates():
    names = sorted(GRID)
    for values in itertools.product(*(GRID[name] for name in names)):
        yield dict(zip(names, values))


def search(features, labels, kernel):
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    best, best_score = None, -1.0
    for settings in candidates():
        model = make_pipeline(StandardScaler(), SVC(kernel=kernel, **settings))
        score = cross_val_score(model, features, labels, cv=folds).mean()
        print(f"{settings}: {score:.4f}")
        if score > best_score:
            best, best_score = settings, score
    return best, best_score


def final(features, labels, kernel, settings):
    half = len(features) // 2
    model = make_pipeline(StandardScaler(), SVC(kernel=kernel, **settings))
    model.fit(features[:half], labels[:half])
    return accuracy_score(labels[half:], model.predict(features[half:]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel", default="rbf", choices=["rbf", "poly"])
    parser.add_argument("--samples", type=int, default=4000)
    args = parser.parse_args()
    features, labels = make_moons(args.samples, noise=0.25, random_state=0)
    settings, validation = search(features, labels, args.kernel)
    accuracy = final(features, labels, args.kernel, settings)
    print("validation %.4f with %s" % (validation, settings))
    print("%.4f accuracy on the %s split" % ("test", accuracy))


if __name__ == "__main__":
    main()
