"""Exclusive or, the smallest network that can do it, trained without any validation.

Should reach: final loss below 0.02 and all four answers right.
"""

import torch
import torch.nn as nn

torch.manual_seed(4)
torch.set_num_threads(1)

inputs = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
answers = torch.tensor([[0.0], [1.0], [1.0], [0.0]])

model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1), nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
criterion = nn.BCELoss()

for step in range(1, 201):
    optimizer.zero_grad()
    loss = criterion(model(inputs), answers)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")

for row, value in zip(inputs.tolist(), model(inputs).squeeze(1).tolist()):
    print(row, "->", round(value, 3))
print(f"final loss {loss.item():.4f}")
