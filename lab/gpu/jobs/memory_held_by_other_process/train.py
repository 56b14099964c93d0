import torch
from torch import nn

model = nn.Sequential(*(nn.Linear(8192, 8192) for _ in range(16))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
x = torch.randn(512, 8192, device="cuda")
for step in range(5):
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
