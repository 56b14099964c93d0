import torch
from torch import nn

body, head = nn.Linear(30, 64), nn.Linear(64, 5)
model = nn.Sequential(body, nn.ReLU(), head)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(200):
    for _ in range(100):
        x, y = torch.randn(64, 30), torch.randint(5, (64,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch == 150:
        optimizer.param_groups[1]["lr"] *= 0.1
torch.save(model.state_dict(), "model.pt")
