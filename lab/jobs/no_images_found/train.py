import argparse
import pathlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Folder(Dataset):
    def __init__(self, root):
        self.files = sorted(pathlib.Path(root).glob("*/*.png"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        data = torch.frombuffer(bytearray(self.files[i].read_bytes()), dtype=torch.uint8)
        return data[:64].float() / 255, int(self.files[i].parent.name)


parser = argparse.ArgumentParser()
parser.add_argument("--root", default="data")
parser.add_argument("--batch-size", type=int, default=4)
args = parser.parse_args()
dataset = Folder(args.root)
print(f"Found {len(dataset)} images in {args.root}")
loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True)
model = nn.Linear(64, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("finished")
