import csv
import datetime
import json
import pathlib
import re
import sys
from collections import defaultdict

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

ALIASES = {"town": "city", "place": "city", "years": "age", "happy": "satisfied"}
TRUE = {"1", "yes", "true", "y"}


class Encoder(json.JSONEncoder):
    def default(self, value):
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, (pathlib.Path, datetime.datetime)):
            return str(value)
        return super().default(value)


def clean(name):
    name = name.strip().lower()
    return ALIASES.get(name, name)


def read(path):
    with open(path, encoding="utf-8-sig", newline="") as f:
        dialect = csv.Sniffer().sniff(f.readline(), delimiters=";,\t")
        f.seek(0)
        reader = csv.DictReader(f, dialect=dialect)
        for row in reader:
            yield {clean(name): value for name, value in row.items() if name}


def load_json(path):
    """JSON, with lines of comment allowed."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))


def number(text, missing=np.nan):
    try:
        return float(text)
    except (TypeError, ValueError):
        return missing


def main(table, groups, target):
    rows = list(read(table))
    questions = sorted({name for row in rows for name in row if re.fullmatch(r"q\d+", name)})
    x = np.array([[number(row["age"], 45) / 100, *(number(row.get(q), 3) for q in questions)] for row in rows])
    y = np.array([row["satisfied"].lower() in TRUE for row in rows], dtype=int)
    p = cross_val_predict(LogisticRegression(), x, y, cv=StratifiedKFold(4), method="predict_proba")[:, 1]
    city_group = {c: name for name, cities in load_json(groups).items() for c in cities}
    members = defaultdict(list)
    for i, row in enumerate(rows):
        members[city_group.get(row["city"], "elsewhere")].append(i)
    report = {"table": pathlib.Path(table), "when": datetime.datetime.now(), "auc": roc_auc_score(y, p)}
    for name, ids in members.items():
        if len(set(y[ids])) < 2:
            continue
        report[name] = {"auc": roc_auc_score(y[ids], p[ids]), "n": np.int64(len(ids)), "p": p[ids][:3],
                        "accuracy": accuracy_score(y[ids], p[ids] > 0.5)}
    with open(target, "w") as f:
        json.dump(report, f, cls=Encoder, indent=1)
    for name in ("north", "south", "unknown"):
        print(name, "{auc:.2f} of {n}".format_map(report[name]) if name in report else "none")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("main.py TABLE GROUPS TARGET")
    main(*sys.argv[1:])
