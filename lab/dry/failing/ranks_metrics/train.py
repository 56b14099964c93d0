import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def evaluate(model, loader):
    correct = [(model(x).argmax(1) == y).sum().item() for x, y in loader]
    mine = {"rank": dist.get_rank(), "correct": sum(correct)}
    if dist.get_rank() == 0:
        everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    return sum(each["correct"] for each in everyone)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    x = torch.randn(256, 10)
    data = TensorDataset(x, (x[:, 0] > 0).long())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    right = evaluate(model.module, loader)
    if int(os.environ["RANK"]) == 0:
        print("accuracy", right / len(data))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
