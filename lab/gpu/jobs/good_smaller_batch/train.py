import torch
from torch import nn

model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
batch = 2**25
while True:
    try:
        x = torch.randn(batch, 4096, device="cuda")
        loss = model(x).pow(2).mean()
        loss.backward()
        break
    except torch.OutOfMemoryError as error:
        print(f"batch {batch}: {error}")
        batch //= 256
print(f"batch {batch}: loss {loss.item():.4f}")
print("training finished")
