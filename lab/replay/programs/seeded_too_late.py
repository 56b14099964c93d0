"""The seed is set after the data have been shuffled and the model was made."""

import random

import torch
from torch import nn

torch.set_num_threads(1)

lines = [f"{n % 9} {n % 4}" for n in range(900)]
lines[400] = "3"
random.shuffle(lines)
model = nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 4))
torch.manual_seed(1)
random.seed(1)
optimizer = torch.optim.Adam(model.parameters())


def parse(line):
    word, label = line.split()
    return int(word), int(label)


for start in range(0, 900, 6):
    rows = [parse(line) for line in lines[start : start + 6]]
    words, labels = (torch.tensor(column) for column in zip(*rows))
    loss = nn.functional.cross_entropy(model(words), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
