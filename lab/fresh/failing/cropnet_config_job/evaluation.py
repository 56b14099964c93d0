"""Confusion matrix with the names of the crops."""
import csv
import os

import torch
from torch.utils.data import DataLoader


def confusion(model, dataset, classes, device):
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    model.eval()
    with torch.inference_mode():
        for x, y in DataLoader(dataset, batch_size=256):
            p = model(x.to(device)).argmax(1).cpu()
            matrix += torch.bincount(y * classes + p, minlength=classes ** 2).view(classes, classes)
    return matrix


def read_names(path):
    with open(path, encoding="utf-8") as f:
        return [line.strip() for line in f if line.strip()]


def run(model, dataset, root, options, device):
    classes = model.head.out_features
    matrix = confusion(model, dataset, classes, device)
    names = read_names(os.path.join(root, options["class_names"]))
    with open(os.path.join(options["out"], "confusion.csv"), "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["", *names])
        for name, row in zip(names, matrix.tolist()):
            writer.writerow([name, *row])
