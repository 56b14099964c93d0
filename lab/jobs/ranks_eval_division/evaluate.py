"""Train a little, then evaluate each rank's own slice of the test set."""
import logging

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger(__name__)
TEST_SIZE = 90


def test_slice(rank, per_rank=30):
    x = torch.randn(TEST_SIZE, 10, generator=torch.Generator().manual_seed(9))
    return x[rank * per_rank : (rank + 1) * per_rank]


def accuracy(model, x):
    target = (x[:, 0] > 0).long()
    with torch.no_grad():
        correct = sum(int(model(row[None]).argmax()) == int(t) for row, t in zip(x, target))
    return correct / len(x)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s - r{rank} - %(levelname)s - %(message)s")
    model = DDP(torch.nn.Linear(10, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(4):
        x = torch.randn(64, 10)
        loss = torch.nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
        logger.info("epoch %d: train loss %.4f", epoch, loss.item())
    logger.info("training done, evaluating")
    acc = torch.tensor(accuracy(model.module, test_slice(rank)))
    dist.all_reduce(acc)
    logger.info("test accuracy %.3f", acc.item() / dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
