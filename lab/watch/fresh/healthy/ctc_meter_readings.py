"""Reads rows of digits of unknown length without knowing where each stands: convolutions, a GRU and CTC.

As is usual with CTC, the loss first falls to a level where only blanks are said, and stays there a while.
Should reach: val exact readings of at least 0.6; a constant answer gives about 0.
"""

import torch
import torch.nn as nn
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(18)
digits = load_digits()
glyphs = torch.tensor(digits.images).float() / 16
classes = torch.tensor(digits.target)
order = torch.randperm(len(glyphs))
TRAIN, VAL = order[:1400], order[1400:]
WIDTH = 48


def readings(pool, count):
    images, targets, lengths = torch.zeros(count, 1, 8, WIDTH), [], []
    for image in images:
        length = int(torch.randint(2, 5, ()))
        chosen = pool[torch.randint(len(pool), (length,))]
        place = int(torch.randint(0, 3, ()))
        for index in chosen:
            image[0, :, place : place + 8] = glyphs[index]
            place += 9 + int(torch.randint(0, 3, ()))
        targets.append(classes[chosen] + 1)
        lengths.append(length)
    return images + 0.05 * torch.randn_like(images), torch.cat(targets), torch.tensor(lengths)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, (3, 3), stride=(2, 2), padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.gru = nn.GRU(32 * 4, 48, bidirectional=True)
        self.classifier = nn.Linear(96, 11)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(x)))
        x = x.flatten(1, 2).permute(2, 0, 1)
        return self.classifier(self.gru(x)[0]).log_softmax(2)


def exact(model, images, targets, lengths):
    model.eval()
    with torch.no_grad():
        best = model(images).argmax(2).T
    hits, start = 0, 0
    for row, length in zip(best, lengths.tolist()):
        collapsed = torch.unique_consecutive(row)
        said = collapsed[collapsed > 0]
        hits += torch.equal(said, targets[start : start + length])
        start += length
    return hits / len(lengths)


reader = Reader()
ctc = nn.CTCLoss(zero_infinity=True)
optimizer = torch.optim.Adam(reader.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=300)
train_images, train_targets, train_lengths = readings(TRAIN, 3000)
starts = torch.cat([torch.tensor([0]), train_lengths.cumsum(0)])
val = readings(VAL, 300)
step = 0
for epoch in range(5):
    for rows in torch.randperm(3000).split(50):
        reader.train()
        output = reader(train_images[rows])
        wanted = torch.cat([train_targets[starts[i] : starts[i + 1]] for i in rows])
        loss = ctc(output, wanted, torch.full((len(rows),), output.shape[0]), train_lengths[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 2.0)
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 30 == 0:
            print(f"step {step} loss {loss.item():.3f} val exact readings {exact(reader, *val):.3f}")
