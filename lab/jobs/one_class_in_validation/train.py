"""Fraud detection: log-loss and ROC AUC on every month of the validation year."""
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

rng = np.random.default_rng(3)


def month(n, fraud_rate):
    y = (rng.random(n) < fraud_rate).astype(int)
    return rng.normal(size=(n, 4)) + y[:, None], y


class Monitor:
    def __init__(self, model):
        self.model = model
        self.history = []

    def score(self, name, x, y):
        p = self.model.predict_proba(x)[:, 1]
        auc, loss = roc_auc_score(y, p), log_loss(y, p)
        print(f"{name}: auc {auc:.3f} log-loss {loss:.3f} ({y.sum()} frauds)")
        self.history.append((name, auc, loss))


x, y = month(5000, 0.05)
model = LogisticRegression().fit(x, y)
print("trained on", len(y), "transactions")
monitor = Monitor(model)
for name, rate in [("2024-01", 0.05), ("2024-02", 0.04), ("2024-03", 0.0), ("2024-04", 0.05)]:
    monitor.score(name, *month(300, rate))
