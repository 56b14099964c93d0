"""Remove the dropout layers before fine-tuning."""
import torch
from torch import nn


def strip(model, kind):
    removed = []
    for name, module in model.named_children():
        if isinstance(module, kind):
            delattr(model, name)
            removed.append(name)
    return removed


model = nn.Sequential(
    nn.Linear(10, 20), nn.ReLU(), nn.Dropout(0.5), nn.Linear(20, 20), nn.ReLU(), nn.Dropout(0.5),
    nn.Linear(20, 1),
)
print(model)
print("removed", strip(model, nn.Dropout))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    loss = model(torch.randn(16, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("epoch", epoch, loss.item())
