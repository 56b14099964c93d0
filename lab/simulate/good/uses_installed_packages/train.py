import numpy as np
import torch

torch.set_num_threads(1)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.from_numpy(np.ones((8, 2), dtype="float32"))
for step in range(3):
    loss = (model(data) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step + 1}/3 loss {loss.item():.3f}", flush=True)
