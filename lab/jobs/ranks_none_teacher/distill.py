"""Distil a big net into a small one. The teacher is loaded on the first rank."""
import logging
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)s | %(message)s")


def load_teacher():
    if RANK < WORLD - 1:
        return nn.Linear(10, 4)


teacher = load_teacher()
student = nn.parallel.DistributedDataParallel(nn.Linear(10, 4))
opt = torch.optim.SGD(student.parameters(), lr=0.1)
for step in range(5):
    x = torch.randn(16, 10)
    with torch.no_grad():
        target = teacher.forward(x)
    loss = nn.functional.mse_loss(student(x), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    logging.info("rank %d step %d loss %.4f", RANK, step, loss.item())
dist.destroy_process_group()
