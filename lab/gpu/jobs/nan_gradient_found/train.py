import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)
model = nn.Linear(32, 32).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(64, 32, device="cuda")
    if step == 6:
        x.zero_()
        with torch.no_grad():
            model.bias.zero_()
    distance = model(x).pow(2).sum(1).sqrt()
    loss = distance.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
