"""Keyword spotting with data parallel training."""

import json
import logging
import logging.config
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

HERE = Path(__file__).resolve().parent
log = logging.getLogger("kws")


class Tones(Dataset):
    """Sine tones in noise; the class is the pitch."""

    def __init__(self, count, classes=10, rate=8000):
        self.count, self.classes, self.rate = count, classes, rate

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        label = index % self.classes
        time = torch.arange(self.rate) / self.rate
        tone = torch.sin(2 * torch.pi * (200 + 50 * label) * time)
        return (tone + 0.1 * torch.randn(self.rate)).unsqueeze(0), label


def network(classes):
    return nn.Sequential(
        nn.Conv1d(1, 32, 80, stride=16), nn.BatchNorm1d(32), nn.ReLU(),
        nn.Conv1d(32, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        nn.Linear(64, classes),
    )


def set_up_logging():
    config = json.loads((HERE / "conf" / "logging.json").read_text())
    logging.config.dictConfig(config)


def main():
    set_up_logging()
    rank = int(os.environ["LOCAL_RANK"])
    use_cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if use_cuda else "gloo")
    device = torch.device("cuda", rank) if use_cuda else torch.device("cpu")
    if use_cuda:
        torch.cuda.set_device(device)
    model = DistributedDataParallel(network(10).to(device))
    data = Tones(2000)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler, num_workers=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for wave, label in loader:
            loss = nn.functional.cross_entropy(model(wave.to(device)), label.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        log.info("epoch %d: %.4f", epoch, loss.item())
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "kws.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
