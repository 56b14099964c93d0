"""Three learning rates are compared in one process; all three are sane, the best by validation is reported.

Should reach: best val R2 of at least 0.90, and each of the three above 0.80.
"""

import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)

X, y = make_friedman1(n_samples=2400, n_features=8, noise=1.0, random_state=0)
X = torch.tensor((X - 0.5) / 0.289, dtype=torch.float32)
y = torch.tensor(y, dtype=torch.float32).unsqueeze(1)
y_mean, y_std = y[:2000].mean(), y[:2000].std()
y = (y - y_mean) / y_std
train_set, X_val, y_val = TensorDataset(X[:2000], y[:2000]), X[2000:], y[2000:]


def run(learning_rate, epochs=15):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.LeakyReLU(), nn.Linear(64, 32), nn.LeakyReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=1e-2)
    loader = DataLoader(train_set, batch_size=40, shuffle=True)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            r2 = 1 - nn.functional.mse_loss(model(X_val), y_val) / y_val.var()
        if epoch % 3 == 2:
            print(f"lr {learning_rate:g} epoch {epoch + 1} train mse {total / len(loader):.4f} val R2 {r2:.4f}")
    return r2.item()


results = {rate: run(rate) for rate in (1e-3, 2e-3, 5e-3)}
best = max(results, key=results.get)
print(f"best learning rate {best:g}: best val R2 {results[best]:.4f}")
