import torch
from torch.utils.data import Dataset


class Pairs(Dataset):
    def __init__(self, number, length=12):
        random = torch.Generator().manual_seed(number)
        self.first = torch.randint(0, 1000, (number, length), generator=random)
        self.second = self.first.clone()
        self.same = torch.rand(number, generator=random) < 0.4
        other = torch.randint(0, 1000, (number, length), generator=random)
        self.second[~self.same] = other[~self.same]

    def __len__(self):
        return len(self.same)

    def __getitem__(self, index):
        names = ("first", "second", "label")
        values = (self.first[index], self.second[index], self.same[index].float())
        return dict(zip(names, values))
