import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __init__(self, number):
        self.pixels = np.random.default_rng(0).integers(0, 256, (number, 24, 24, 3), dtype=np.uint8)

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        return torch.from_numpy(self.pixels[index]).permute(2, 0, 1), int(self.pixels[index].mean() > 127)


class Prefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.stream = torch.cuda.Stream()
        self.mean = torch.tensor([125.0, 125.0, 125.0]).cuda().view(1, 3, 1, 1)
        self.preload()

    def preload(self):
        try:
            pixels, labels = next(self.loader)
        except StopIteration:
            self.batch = None
            return
        with torch.cuda.stream(self.stream):
            pixels = pixels.cuda(non_blocking=True).float().sub_(self.mean).div_(64.0)
            self.batch = pixels, labels.cuda(non_blocking=True)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.batch
        if batch is not None:
            for tensor in batch:
                tensor.record_stream(torch.cuda.current_stream())
        self.preload()
        return batch


model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 22 * 22, 2)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
for epoch in range(2):
    prefetcher = Prefetcher(DataLoader(Frames(130), batch_size=16, pin_memory=True))
    start.record()
    batch = prefetcher.next()
    while batch is not None:
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch = prefetcher.next()
    end.record()
    torch.cuda.synchronize()
    print(f"epoch {epoch} loss {loss.item():.3f} {start.elapsed_time(end):.1f} ms")
