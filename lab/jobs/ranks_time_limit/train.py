import logging
import time

import torch
import torch.distributed as dist

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(10_000):
    loss = net(torch.randn(4, 8)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        logging.info("rank %d step %d of 10000 loss %.5f", dist.get_rank(), step, loss.item())
    time.sleep(0.05)
