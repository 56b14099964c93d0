"""A tagger on padded lines: which words begin or continue a part number? Padding does not count in the loss."""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

SEED = 36
random.seed(SEED)
torch.manual_seed(SEED)
TAGS = {"O": 0, "B": 1, "I": 2, "PAD": 3}
STARTS, PARTS, WORDS = range(1, 6), range(6, 16), range(6, 40)


def line():
    ids, tags = [], []
    while len(ids) < random.randrange(6, 16):
        if random.random() < 0.2:
            tail = [random.choice(PARTS) for _ in range(random.randrange(1, 4))]
            ids += [random.choice(STARTS), *tail]
            tags += [TAGS["B"]] + [TAGS["I"]] * len(tail)
        ids.append(random.choice(WORDS[10:]))
        tags.append(TAGS["O"])
        if random.random() < 0.5:
            ids.append(random.choice(WORDS))
            tags.append(TAGS["O"])
    return torch.tensor(ids), torch.tensor(tags)


def collate(rows):
    ids = pad_sequence([ids for ids, _ in rows], batch_first=True)
    return ids, pad_sequence([tags for _, tags in rows], batch_first=True, padding_value=TAGS["PAD"])


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(40, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, len(TAGS))

    def forward(self, ids):
        return self.out(self.lstm(self.words(ids))[0])


train, held = [line() for _ in range(600)], [line() for _ in range(200)]
model = Tagger()
criterion = nn.CrossEntropyLoss(ignore_index=TAGS["PAD"])
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    random.shuffle(train)
    for start in range(0, len(train), 25):
        ids, tags = collate(train[start : start + 25])
        loss = criterion(model(ids).flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        ids, tags = collate(held)
        guessed = model(ids).argmax(-1)
    real = tags != TAGS["PAD"]
    print(f"epoch {epoch} loss {loss.item():.4f} word accuracy {(guessed == tags)[real].float().mean():.4f}")
