"""Bag-of-letters classifier over a file as people send it."""

import csv
import json
import warnings
from pathlib import Path

import torch
from torch import nn

DATA = Path(__file__).parent / "data"


def rows(path):
    skipped = 0
    with open(path, encoding="utf-8", errors="replace") as handle:
        for number, line in enumerate(handle, 1):
            if not (line := line.strip()):
                continue
            try:
                record = json.loads(line)
                yield record["text"], int(record["label"])
            except (json.JSONDecodeError, KeyError):
                skipped += 1
                warnings.warn(f"line {number} is skipped", stacklevel=2)
    if skipped:
        print("skipped", skipped)


def weights(path):
    try:
        with open(path, newline="") as handle:
            return {row["word"]: float(row["weight"]) for row in csv.DictReader(handle)}
    except (OSError, KeyError):
        return {}


def letters(text):
    counts = torch.zeros(27)
    for letter in text.lower():
        counts["abcdefghijklmnopqrstuvwxyz".find(letter)] += 1
    return counts


def optional(name, default=None):
    path = DATA / name
    return json.loads(path.read_text()) if path.exists() else default


def main():
    examples = list(rows(DATA / "rows.jsonl"))
    weight = weights(DATA / "weights.csv")
    extra = optional("extra.json", [])
    x = torch.stack([letters(text) for text, _ in examples])
    y = torch.tensor([label for _, label in examples], dtype=torch.float)
    w = torch.tensor([weight.get(text.split()[0], 1.0) for text, _ in examples])
    model = nn.Linear(27, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(20):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y, weight=w)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    Path("model.json").write_text(
        json.dumps({name: value.tolist() for name, value in model.state_dict().items()})
    )
    saved = json.loads(Path("model.json").read_text())
    assert saved["bias"] and not extra
    try:
        text = (DATA / "rows.jsonl").read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = (DATA / "rows.jsonl").read_text(encoding="latin-1")
    print(len(text), loss.item())


if __name__ == "__main__":
    main()
