import torch
from torch import nn

model = nn.Sequential(nn.Linear(4096, 16384), nn.GELU(), nn.Linear(16384, 4096)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
history = []
for step in range(10_000):
    x = torch.randn(16_384, 4096, device="cuda")
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    history.append(loss)
    if step % 5 == 0:
        print(f"step {step} loss {sum(history) / len(history):.4f}")
