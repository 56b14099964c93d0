import json
import os
import pathlib
import urllib.request

import torch
from torch import nn

INPUT = pathlib.Path(os.environ.get("INPUT_DIR", "/output/input"))
OUTPUT = pathlib.Path(os.getenv("OUTPUT_DIR") or "/output/models")
RANK = int(os.environ.get("RANK", 0))
RUN = os.environ["RUN_NAME"] if "RUN_NAME" in os.environ else "unnamed"
URL = "https://example.org/words.txt"


def words():
    path = INPUT / "words.txt"
    if not path.exists():
        INPUT.mkdir(parents=True, exist_ok=True)
        try:
            urllib.request.urlretrieve(URL, path)
        except OSError as error:
            print("no download:", error)
            path.write_text("alpha\nbeta\ngamma\n")
    return path.read_text().split()


class Settings(dict):
    __getattr__ = dict.__getitem__


def main():
    settings = Settings(lr=0.1, steps=50)
    if os.path.isfile("settings.json"):
        with open("settings.json") as handle:
            settings.update(json.load(handle))
    vocabulary = words()
    embed = nn.Embedding(len(vocabulary), 4)
    optimizer = torch.optim.SGD(embed.parameters(), lr=settings.lr)
    for _ in range(settings.steps):
        optimizer.zero_grad()
        loss = embed.weight.square().sum()
        loss.backward()
        optimizer.step()
    if RANK == 0:
        OUTPUT.mkdir(parents=True, exist_ok=True)
        torch.save(embed.state_dict(), OUTPUT / f"{RUN}.pt")
        with open(OUTPUT / f"{RUN}.json", "w") as handle:
            json.dump({"words": len(vocabulary), "loss": loss.item()}, handle)


if __name__ == "__main__":
    main()
