# Three arms of a spiral, told apart by a plain network that is trained with hand-made batches.
# Test accuracy reaches about 1.0.

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
np.random.seed(1)


def spirals(per_arm):
    points, arms = [], []
    for arm in range(3):
        radius = np.random.uniform(0.1, 1.0, per_arm)
        angle = radius * 5 + arm * 2 * np.pi / 3 + np.random.normal(0, 0.15, per_arm)
        points.append(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1))
        arms.append(np.full(per_arm, arm))
    return np.concatenate(points).astype("float32") * 2, np.concatenate(arms)


def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight, gain=1.4)
        nn.init.zeros_(m.bias)


X, y = spirals(500)
X_test, y_test = spirals(150)
X, y = torch.from_numpy(X), torch.from_numpy(y)
X_test, y_test = torch.from_numpy(X_test), torch.from_numpy(y_test)

model = nn.Sequential(
    nn.Linear(2, 40),
    nn.Tanh(),
    nn.Linear(40, 40),
    nn.ReLU(),
    nn.Linear(40, 3),
)
model.apply(init_weights)

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
batch_size = 50

for epoch in range(40):
    perm = torch.randperm(len(X))
    losses = []
    for start in range(0, len(X), batch_size):
        idx = perm[start : start + batch_size]
        scores = model(X[idx])
        loss = criterion(scores, y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if (epoch + 1) % 4 == 0:
        with torch.no_grad():
            test_acc = (model(X_test).argmax(dim=1) == y_test).float().mean().item()
        print(f"epoch {epoch + 1:3d}  loss {np.mean(losses):.4f}  test accuracy {test_acc:.4f}")
