import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(5)


class Utterances(Dataset):
    """Log-mel frames of utterances, most of them cut to 50 frames."""

    def __init__(self, n):
        self.lengths = [50] * n
        self.lengths[n // 2] = 43

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        frames = torch.randn(self.lengths[index], 40)
        return frames, index % 4


def main():
    loader = DataLoader(Utterances(256), batch_size=16, num_workers=2)
    model = nn.GRU(40, 32, batch_first=True)
    head = nn.Linear(32, 4)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
    for epoch in range(2):
        for i, (frames, speaker) in enumerate(loader):
            _, hidden = model(frames)
            loss = nn.functional.cross_entropy(head(hidden[-1]), speaker)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} batch {i:2d}/{len(loader)} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
