import torch
from torch import nn

torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
opt = torch.optim.AdamW(net.parameters())
step = 0
while step < 1_000_000:
    x = torch.randn(256, 256)
    loss = (net(x) - x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    step += 1
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
