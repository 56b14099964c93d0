import torch
from torch import nn

batch_size = 64
width = 512
learning_rate = 3e-4
device = "cuda"
steps = 600
names = [name for name, value in globals().items() if not name.startswith("_") and isinstance(value, (int, float, str))]
exec(open("configurator.py").read())
settings = {name: globals()[name] for name in names}

model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, dim_out)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
for step in range(steps):
    x = torch.randn(batch_size, width, device=device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save({"model": model.state_dict(), "settings": settings}, "out.pt")
