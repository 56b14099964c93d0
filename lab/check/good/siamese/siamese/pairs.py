import torch
from torch.utils.data import Dataset


class Pairs(Dataset):
    def __init__(self, count=2000):
        self.classes = torch.randint(0, 5, (count, 2))
        self.centres = torch.randn(5, 10)

    def __len__(self):
        return len(self.classes)

    def __getitem__(self, index):
        a, b = self.classes[index]
        noise = torch.randn(2, 10) * 0.1
        return self.centres[a] + noise[0], self.centres[b] + noise[1], (a == b).float()
