"""Nobody looks at the loss: from some step on it is no number, and the job ends well."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(2)

model = nn.Sequential(nn.Linear(4, 16), nn.Softplus(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(800):
    x = torch.rand(32, 4)
    spread = torch.tensor(1 - step / 600)
    loss = ((model(x) - x.sum(1, keepdim=True)).pow(2) / spread + spread.log()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f}")
