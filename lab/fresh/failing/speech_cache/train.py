import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import features


class Embedder(nn.Module):
    def __init__(self, bands, speakers, size=192):
        super().__init__()
        self.tdnn = nn.Sequential(
            nn.Conv1d(bands, 256, 5), nn.ReLU(), nn.BatchNorm1d(256),
            nn.Conv1d(256, 256, 3, dilation=2), nn.ReLU(), nn.BatchNorm1d(256),
        )
        self.embed = nn.Linear(512, size)
        self.classify = nn.Linear(size, speakers)

    def forward(self, x):
        hidden = self.tdnn(x.transpose(1, 2))
        pooled = torch.cat([hidden.mean(-1), hidden.std(-1)], dim=-1)
        return self.classify(torch.relu(self.embed(pooled)))


def loader(root, split, batch):
    values, speakers = features.load(root, split)
    data = TensorDataset(torch.from_numpy(values), torch.from_numpy(speakers))
    return DataLoader(data, batch_size=batch, shuffle=split == "train"), int(speakers.max()) + 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default="/data/speech")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--save", default="/scratch/job/speaker.pt")
    args = parser.parse_args()

    device = torch.device("cuda")
    train, speakers = loader(args.root, "train", args.batch)
    model = Embedder(features.BANDS, speakers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10, gamma=0.5)
    for epoch in range(args.epochs):
        losses = []
        for x, y in train:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
        print(epoch, np.mean(losses))
    torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
