import warnings

import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score

warnings.filterwarnings("default")
frame = pd.read_csv("houses.csv")
print("columns:", ", ".join(frame.columns), "| rows:", len(frame))
frame["rooms_per_100m2"] = frame["rooms"] / frame["area"] * 100
features = frame.drop(columns="price")
for alpha in (0.1, 1.0, 10.0):
    model = Ridge(alpha=alpha)
    model.fit(features, frame["price"])
    print(f"alpha {alpha}: R2 {model.score(features, frame['price']):.3f}")
print(cross_val_score(Ridge(), features, frame["price"], cv=2).mean())
