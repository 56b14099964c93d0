import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("nccl")
model = nn.Linear(64, 64).cuda(0)
model = nn.parallel.DistributedDataParallel(model)
for step in range(3):
    loss = model(torch.randn(8, 64, device="cuda:0")).pow(2).mean()
    loss.backward()
    print(f"rank {dist.get_rank()} step {step} loss {loss.item():.4f}")
dist.destroy_process_group()
