"""Per-class report, written when training is over."""

import json

import torch

from flowers.data import SPLITS


def confusion(model, loader, device, classes):
    table = torch.zeros(classes, classes, dtype=torch.long)
    model.eval()
    with torch.no_grad():
        for images, labels in loader:
            predicted = model(images.to(device)).argmax(1).cpu()
            for truth, guess in zip(labels, predicted):
                table[truth, guess] += 1
    return table


def write_report(model, loader, device, output):
    with open(SPLITS / "classes.json") as handle:
        classes = json.load(handle)
    table = confusion(model, loader, device, len(classes))
    report = {}
    for name, index in classes.items():
        total = int(table[index].sum())
        report[name] = {"total": total, "right": int(table[index, index])}
    with open(output, "w") as handle:
        json.dump(report, handle, indent=2)
    return report
