import argparse
import os
from types import SimpleNamespace

import torch
import torch.nn as nn
import yaml


def to_namespace(value):
    if isinstance(value, dict):
        return SimpleNamespace(**{key: to_namespace(item) for key, item in value.items()})
    return value


def load(path, overrides):
    with open(path) as f:
        raw = yaml.safe_load(f)
    for item in overrides or []:
        name, text = item.split("=", 1)
        *parents, last = name.split(".")
        node = raw
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = yaml.safe_load(text)
    return to_namespace(raw)


class Double(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.down1, self.down2 = Double(3, width), Double(width, 2 * width)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.last = Double(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(self.pool(first))
        return self.head(self.last(torch.cat([first, self.up(second)], 1)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-c", "--config", default="config.yml")
    ap.add_argument("--set", nargs="*", dest="overrides")
    a = ap.parse_args()
    cfg = load(a.config, a.overrides)
    net = UNet(cfg.model.width, cfg.model.classes)
    device = getattr(cfg.train, "device", "cuda" if torch.cuda.is_available() else "cpu")
    net.to(device)
    opt = torch.optim.Adam(net.parameters(), lr=cfg.train.lr)
    os.makedirs(cfg.train.out, exist_ok=True)
    for epoch in range(cfg.train.epochs):
        for _ in range(20):
            images = torch.rand(4, 3, cfg.data.size, cfg.data.size, device=device)
            masks = (images.sum(1) * cfg.model.classes / 3).long().clamp(max=cfg.model.classes - 1)
            loss = nn.functional.cross_entropy(net(images), masks)
            opt.zero_grad()
            loss.backward()
            opt.step()
        torch.save(net.state_dict(), os.path.join(cfg.train.out, "last.pth"))
        print(f"epoch={epoch} loss={loss.item():.4f}")


if __name__ == "__main__":
    main()
