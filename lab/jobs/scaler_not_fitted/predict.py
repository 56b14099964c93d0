"""Fit a small pipeline, then score the held-out month."""
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(11)


def month(n):
    x = rng.normal(loc=3.0, scale=2.0, size=(n, 5))
    return x, (x[:, 0] + x[:, 1] > 6).astype(int)


class ChurnModel:
    def __init__(self):
        self.scaler = StandardScaler()
        self.classifier = LogisticRegression(max_iter=500)

    def fit(self, x, y):
        self.classifier.fit(StandardScaler().fit_transform(x), y)
        print("train accuracy", self.classifier.score(StandardScaler().fit_transform(x), y))
        return self

    def predict(self, x):
        return self.classifier.predict(self.scaler.transform(x))


train_x, train_y = month(500)
model = ChurnModel().fit(train_x, train_y)
test_x, test_y = month(200)
print("scoring", len(test_x), "customers")
print("test accuracy", (model.predict(test_x) == test_y).mean())
