"""Customer churn from categories and amounts: entity embeddings, a smoothed target encoding, and a later month as the test."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(14)
torch.manual_seed(14)
CITIES, PLANS = 300, ["basic", "family", "flex", "pro", "senior", "student", "team", "trial"]
city_effect = rng.normal(0, 0.9, CITIES)
plan_effect = dict(zip(PLANS, [0.2, -1.4, 1.1, -0.5, -1.8, 0.9, -0.8, 2.0]))


def month(n, offered):
    city = rng.integers(0, CITIES, n)
    plan = rng.choice(offered, n)
    tenure, spend = rng.exponential(20, n), rng.lognormal(3, 0.5, n)
    score = city_effect[city] + np.array([plan_effect[p] for p in plan]) - 0.05 * tenure + 0.02 * spend
    churned = (score + rng.logistic(0, 0.7, n) > 0.3).astype(np.float32)
    return {"city": city, "plan": plan, "tenure": tenure, "spend": spend, "churned": churned}


def target_rate(city, churned, prior=1.0):
    """Smoothed share of churned customers of each city."""
    count = np.bincount(city, minlength=CITIES)
    total = np.bincount(city, weights=churned, minlength=CITIES)
    return (total + prior * churned.mean()) / (count + prior)


def encode(frame, vocabulary, rates, mean, std):
    numbers = (np.log1p(np.stack([frame["tenure"], frame["spend"]], 1)) - mean) / std
    dense = np.concatenate([numbers, 4 * (rates - 0.5)[:, None]], 1)
    plan = np.array([vocabulary[p] for p in frame["plan"]])
    return (
        torch.tensor(dense, dtype=torch.float32),
        torch.tensor(plan, dtype=torch.long),
        torch.tensor(frame["churned"]),
    )


class ChurnNet(nn.Module):
    def __init__(self, plans):
        super().__init__()
        self.plan = nn.Embedding(plans, 6)
        self.net = nn.Sequential(nn.Linear(9, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, dense, plan):
        return self.net(torch.cat([dense, self.plan(plan)], 1)).squeeze(1)


def auc(score, label):
    rank = score.argsort().argsort().double() + 1
    pos = label.sum().double()
    return ((rank[label == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(label) - pos))).item()


history = month(6000, PLANS)
later = month(3000, PLANS[1:])
vocabulary = {name: code for code, name in enumerate(np.unique(history["plan"]))}
half = rng.random(len(history["city"])) < 0.5
past = target_rate(history["city"][half], history["churned"][half])
logs = np.log1p(np.stack([history["tenure"], history["spend"]], 1))
mean, std = logs.mean(0), logs.std(0)
train_part = {name: column[~half] for name, column in history.items()}
train = encode(train_part, vocabulary, past[train_part["city"]], mean, std)
test = encode(later, vocabulary, past[later["city"]], mean, std)

model = ChurnNet(len(vocabulary))
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
for epoch in range(25):
    model.train()
    for idx in torch.randperm(len(train[2])).split(64):
        dense, plan, label = (column[idx] for column in train)
        loss = loss_fn(model(dense, plan), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        auc_train = auc(model(train[0], train[1]), train[2])
        auc_test = auc(model(test[0], test[1]), test[2])
    if epoch % 4 == 0:
        print(f"epoch {epoch} loss {loss.item():.4f} train_auc {auc_train:.4f} test_auc {auc_test:.4f}")
