import pandas as pd
from sklearn.ensemble import RandomForestClassifier


def read(kind):
    frame = pd.read_csv(f"{kind}.csv")
    print(f"{kind}: {len(frame)} rows, columns {list(frame.columns)}")
    return frame


def features(frame):
    return pd.get_dummies(frame[["age", "plan"]], columns=["plan"]).to_numpy(dtype="float32")


train = read("train")
model = RandomForestClassifier(n_estimators=20, random_state=0)
model.fit(features(train), train["left"])
print("train accuracy:", model.score(features(train), train["left"]))

test = read("test")
accuracy = model.score(features(test), test["left"])
print("test accuracy:", accuracy)
