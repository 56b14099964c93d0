import sys
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
counts = [40, 64]
data = TensorDataset(torch.randn(counts[rank], 6), torch.randn(counts[rank], 1))
net = torch.nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for i, (x, y) in enumerate(DataLoader(data, batch_size=8)):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    for p in net.parameters():
        dist.all_reduce(p.grad)
        p.grad.div_(dist.get_world_size())
    opt.step()
    print(f"rank {rank} batch {i} loss {loss.item():.3f}", flush=True)
print(f"rank {rank}: done with {counts[rank]} samples", flush=True)
sys.exit(0)
