import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Gaussians(Dataset):
    """Points around five centres."""

    def __init__(self, count=50000, seed=0):
        generator = torch.Generator().manual_seed(seed)
        centres = 3 * torch.randn(5, 20, generator=generator)
        self.labels = torch.randint(0, 5, (count,), generator=generator)
        self.points = centres[self.labels] + torch.randn(count, 20, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.points[index], self.labels[index]


def make_loader(batch_size, workers=4):
    dataset = Gaussians()
    sampler = DistributedSampler(dataset)
    loader = DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=True,
        sampler=sampler,
        num_workers=workers,
        pin_memory=True,
        drop_last=True,
    )
    return loader, sampler
