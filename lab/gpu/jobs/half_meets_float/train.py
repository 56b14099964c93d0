import torch
from torch import nn

body = nn.Sequential(nn.Linear(64, 64), nn.ReLU()).cuda().half()
head = nn.Linear(64, 8).cuda()
x = torch.randn(32, 64, device="cuda")
for step in range(3):
    loss = head(body(x.half())).pow(2).mean()
    loss.backward()
    print(f"step {step} loss {loss.item():.4f}")
