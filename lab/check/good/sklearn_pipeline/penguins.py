import argparse
import json
from pathlib import Path

import joblib
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def build():
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (texts, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, RandomForestClassifier(random_state=0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path("artifacts"))
    args = parser.parse_args()
    table = pd.read_csv(args.input).dropna(subset=["species"])
    target = table.pop("species")
    grid = {"randomforestclassifier__max_depth": [2, None]}
    search = GridSearchCV(build(), grid, cv=2, scoring="accuracy")
    search.fit(table, target)
    args.output.mkdir(parents=True, exist_ok=True)
    joblib.dump(search.best_estimator_, args.output / "model.joblib")
    card = {"score": search.best_score_, "parameters": search.best_params_}
    (args.output / "card.json").write_text(json.dumps(card, default=str))
    again = joblib.load(args.output / "model.joblib")
    print(again.predict(table)[:3], json.loads((args.output / "card.json").read_text())["score"])


if __name__ == "__main__":
    main()
