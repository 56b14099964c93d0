import argparse

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def load(path):
    table = pd.read_csv(path)
    return table.drop(columns="churned"), table["churned"]


def pipeline(categorical, numeric):
    encode = ColumnTransformer(
        [
            ("categories", OneHotEncoder(handle_unknown="ignore", sparse=False), categorical),
            ("numbers", StandardScaler(), numeric),
        ]
    )
    return Pipeline([("encode", encode), ("model", HistGradientBoostingClassifier(max_iter=50))])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", default="customers.csv")
    parser.add_argument("--folds", type=int, default=3)
    args = parser.parse_args()
    features, target = load(args.table)
    categorical = [name for name in features if features[name].dtype.kind not in "if"]
    numeric = [name for name in features if name not in categorical]
    model = pipeline(categorical, numeric)
    folds = StratifiedKFold(args.folds, shuffle=True, random_state=0)
    print("AUC", np.mean(cross_val_score(model, features, target, cv=folds, scoring="roc_auc")))
    joblib.dump(model.fit(features, target), "churn.joblib")


if __name__ == "__main__":
    main()
