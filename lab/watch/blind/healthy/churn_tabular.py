"""Predicts churn from a table: 7 % positives, columns of other scales, two dead columns; balanced by pos_weight."""

import numpy as np
import torch
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 13
np.random.seed(SEED)
torch.manual_seed(SEED)
N = 6000
income = np.random.lognormal(10, 0.5, N)
age = np.random.uniform(18, 80, N)
calls = np.random.poisson(2, N)
contract = np.random.randint(0, 3, N)
legacy, region = np.zeros(N), np.ones(N)  # columns that the export no longer fills
noise = np.random.randn(N, 6)
score = 1.3 * calls - 1.4 * contract - 0.05 * (age - 18) + 0.6 * (np.log(income) < 9.7) + np.random.randn(N) * 0.7
churn = (score > np.quantile(score, 0.93)).astype(np.float32)
X = np.column_stack([income, age, calls, contract, legacy, region, noise]).astype(np.float32)
n_train = int(0.8 * N)
scaler = StandardScaler().fit(X[:n_train])
X_train, X_val = scaler.transform(X[:n_train]), scaler.transform(X[n_train:])
y_train, y_val = churn[:n_train], churn[n_train:]

train_loader = DataLoader(TensorDataset(torch.tensor(X_train), torch.tensor(y_train)), batch_size=128, shuffle=True)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
positives = y_train.sum()
pos_weight = torch.tensor((len(y_train) - positives) / positives)
loss_fn = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=15 * len(train_loader))
for epoch in range(15):
    model.train()
    running = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item() * len(xb)
    model.eval()
    with torch.no_grad():
        guess = (model(torch.tensor(X_val)).squeeze(1) > 0).numpy()
    bal = balanced_accuracy_score(y_val, guess)
    print(f"Epoch {epoch + 1:02d} train_loss={running / n_train:.4f} balanced_acc {bal:.4f}")
