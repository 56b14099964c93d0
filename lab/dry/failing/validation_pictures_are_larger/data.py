import torch
from torch.utils.data import Dataset


class Pictures(Dataset):
    """Pictures of 40 x 40, cut to `size` at a random or at the central place."""

    def __init__(self, number, size, training):
        self.pixels = torch.rand(number, 3, 40, 40)
        self.labels = torch.randint(0, 10, (number,))
        self.size = size
        self.training = training

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.pixels[index]
        if self.training:
            top, left = torch.randint(0, 40 - self.size + 1, (2,)).tolist()
            picture = picture[:, top : top + self.size, left : left + self.size]
        return picture, self.labels[index]
