import os
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Boxes(Dataset):
    """Crops with their box; boxes[i] is (left, top, right, bottom)."""

    def __init__(self, n=48):
        g = torch.Generator().manual_seed(7)
        self.images = torch.rand(n, 3, 16, 16, generator=g)
        self.boxes = [[0, 0, 8, 8] for _ in range(n)]
        self.boxes[30] = [0, 0, 8]            # annotation tool dropped one number

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        box = self.boxes[i]
        crop = self.images[i][:, box[1] : box[3], box[0] : box[2]]
        return crop, torch.tensor(float(i % 2))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = Boxes()
    loader = DataLoader(data, batch_size=4, num_workers=2, sampler=DistributedSampler(data, shuffle=False))
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 1))
    net = torch.nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for x, y in loader:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x)[:, 0], y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(time.strftime("%H:%M:%S"), f"rank={rank} pid={os.getpid()} loss={loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
