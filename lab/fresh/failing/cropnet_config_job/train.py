import pathlib
import sys

import numpy as np
import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import evaluation


def load(path):
    with np.load(path) as f:
        images = torch.from_numpy(f["images"]).permute(0, 3, 1, 2).float() / 255
        return TensorDataset(images, torch.from_numpy(f["labels"]).long())


class CropNet(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        layers, last = [], 3
        for width in channels:
            layers += [nn.Conv2d(last, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                       nn.MaxPool2d(2)]
            last = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(last, classes)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def validate(model, loader, device):
    model.eval()
    right = seen = 0
    with torch.inference_mode():
        for x, y in loader:
            right += (model(x.to(device)).argmax(1).cpu() == y).sum().item()
            seen += len(y)
    return right / max(seen, 1)


def main(path):
    with open(path) as f:
        cfg = yaml.safe_load(f)
    torch.manual_seed(cfg["seed"])
    root = pathlib.Path(cfg["data"]["root"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train = DataLoader(load(root / cfg["data"]["train_table"]),
                       batch_size=cfg["data"]["batch_size"], shuffle=True)
    val = DataLoader(load(root / cfg["data"]["val_table"]), batch_size=256)
    model = CropNet(**cfg["model"]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=float(cfg["optim"]["lr"]))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg["optim"]["epochs"])
    out = pathlib.Path(cfg["evaluation"]["out"])
    out.mkdir(parents=True, exist_ok=True)
    best = 0.0
    for epoch in range(cfg["optim"]["epochs"]):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
        schedule.step()
        accuracy = validate(model, val, device)
        print(f"{epoch:3d} {accuracy:.4f}", flush=True)
        if accuracy >= best:
            best = accuracy
            torch.save(model.state_dict(), out / "best.pt")
    model.load_state_dict(torch.load(out / "best.pt"))
    evaluation.run(model, load(root / cfg["evaluation"]["table"]), root, cfg["evaluation"], device)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "configs/dev.yaml")
