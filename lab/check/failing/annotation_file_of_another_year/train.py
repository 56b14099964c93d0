"""Trains a single-scale detector on COCO boxes."""

import argparse
import json
from pathlib import Path

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Boxes(Dataset):
    """The largest box of each image, and its class."""

    def __init__(self, root, annotations, image_size):
        self.root = Path(root)
        with open(self.root / annotations) as handle:
            content = json.load(handle)
        sizes = {image["id"]: (image["width"], image["height"]) for image in content["images"]}
        largest = {}
        for annotation in content["annotations"]:
            best = largest.get(annotation["image_id"])
            if best is None or annotation["area"] > best["area"]:
                largest[annotation["image_id"]] = annotation
        self.items = [
            (sizes[image], annotation["bbox"], annotation["category_id"])
            for image, annotation in largest.items()
        ]
        self.image_size = image_size

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        (width, height), (x, y, w, h), label = self.items[index]
        box = torch.tensor([x / width, y / height, w / width, h / height])
        image = torch.zeros(3, self.image_size, self.image_size)
        return image, box, label


class Detector(nn.Module):
    def __init__(self, backbone_width, num_classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, backbone_width, 7, stride=4, padding=3),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.box = nn.Linear(backbone_width, 4)
        self.label = nn.Linear(backbone_width, num_classes)

    def forward(self, images):
        features = self.backbone(images)
        return self.box(features).sigmoid(), self.label(features)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    args = parser.parse_args()
    with open(args.config) as handle:
        config = yaml.safe_load(handle)
    data = config["data"]
    dataset = Boxes(data["root"], data["annotations"], data["image_size"])
    loader = DataLoader(dataset, batch_size=config["optim"]["batch_size"], shuffle=True)
    model = Detector(**config["model"])
    optimizer = torch.optim.SGD(model.parameters(), lr=config["optim"]["lr"], momentum=0.9)
    for epoch in range(config["optim"]["epochs"]):
        for images, boxes, labels in loader:
            optimizer.zero_grad()
            predicted, logits = model(images)
            loss = nn.functional.l1_loss(predicted, boxes)
            loss = loss + nn.functional.cross_entropy(logits, labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
