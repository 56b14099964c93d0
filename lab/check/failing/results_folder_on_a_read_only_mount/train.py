"""Segmentation training, configured by conf.yaml and key=value overrides."""

import os
import sys

import torch
import torch.nn as nn
from omegaconf import OmegaConf


class SegmentationNet(nn.Module):
    def __init__(self, width, classes=19):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width * 2, 3, stride=2, padding=1),
            nn.BatchNorm2d(width * 2),
            nn.ReLU(inplace=True),
        )
        self.head = nn.Conv2d(width * 2, classes, 1)

    def forward(self, images):
        logits = self.head(self.encoder(images))
        return nn.functional.interpolate(logits, scale_factor=4, mode="bilinear")


def result_folder(config):
    folder = os.path.join(config.data.root, config.data.name, "results")
    os.makedirs(folder, exist_ok=True)
    return folder


def batches(root, name, size=8):
    listing = os.path.join(root, name, "train.txt")
    with open(listing) as handle:
        names = [line.strip() for line in handle if line.strip()]
    for start in range(0, len(names) - size + 1, size):
        yield torch.rand(size, 3, 256, 256), torch.randint(0, 19, (size, 256, 256))


def main():
    base = OmegaConf.load("conf.yaml")
    config = OmegaConf.merge(base, OmegaConf.from_cli(sys.argv[1:]))
    print(OmegaConf.to_yaml(config))
    folder = result_folder(config)
    device = torch.device("cuda")
    model = SegmentationNet(config.model.width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.train.lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss(ignore_index=255)
    step = 0
    while step < config.train.steps:
        for images, masks in batches(config.data.root, config.data.name):
            optimizer.zero_grad()
            loss = criterion(model(images.to(device)), masks.to(device))
            loss.backward()
            optimizer.step()
            step += 1
            if step % 5000 == 0:
                torch.save(model.state_dict(), os.path.join(folder, f"step{step}.pth"))
    print("finished after", step)


if __name__ == "__main__":
    main()
