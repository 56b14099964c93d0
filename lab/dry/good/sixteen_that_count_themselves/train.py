import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    ones = torch.ones(1)
    dist.all_reduce(ones)
    assert ones.item() == world, "a process is missing"
    names = [None]
    if rank == 0:
        names = [["cat", "dog", "bird"]]
    dist.broadcast_object_list(names, src=0)
    classes = len(names[0])
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(320, 8), torch.randint(classes, (320,)))
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=10, sampler=sampler)
    assert len(loader) == 2
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(50):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    every = [torch.zeros(1) for _ in range(world)]
    dist.all_gather(every, loss.detach().reshape(1))
    if rank == 0:
        print("loss", torch.cat(every).mean().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
