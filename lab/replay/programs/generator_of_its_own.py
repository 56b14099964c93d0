"""NumPy's new generators take their seed from the system where none is given."""

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
rng = np.random.default_rng()

prices = np.abs(rng.normal(size=500)).round(1).astype(np.float32)
model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(3000):
    rows = rng.choice(500 - 4, size=2, replace=False)
    window = np.stack([prices[row : row + 4] for row in rows])
    growth = torch.from_numpy(window[:, 1:] / window[:, :-1])
    loss = (model(growth) - growth[:, -1:]).pow(2).mean()
    if not torch.isfinite(loss):
        raise FloatingPointError(f"loss {loss.item()} for rows {rows.tolist()}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
