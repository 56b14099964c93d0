"""Reviews of different lengths, padded and packed for an LSTM: "not" turns the next word of feeling around.

Should reach: val accuracy of at least 0.93.
"""

import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)

GOOD = "good great lovely fine bright warm".split()
BAD = "bad awful dull sad cold weak".split()
FILLER = "the a film was and it plot with some actors then music in scene of".split()
WORDS = ["<pad>", "not", *GOOD, *BAD, *FILLER]
INDEX = {word: i for i, word in enumerate(WORDS)}


def review():
    words, score = [], 0
    while score == 0 or len(words) < 5:
        for _ in range(random.randint(0, 4)):
            words.append(random.choice(FILLER))
        sign = random.choice([1, -1])
        word = random.choice(GOOD if sign > 0 else BAD)
        if random.random() < 0.4:
            words.append("not")
            sign = -sign
        words.append(word)
        score += sign
    return torch.tensor([INDEX[w] for w in words]), float(score > 0)


def collate(batch):
    sequences, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in sequences])
    return pad_sequence(sequences, batch_first=True), lengths, torch.tensor(labels)


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 32, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.2)
        self.output = nn.Linear(64, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.output(self.dropout(torch.cat([hidden[0], hidden[1]], dim=1))).squeeze(1)


train_loader = DataLoader([review() for _ in range(2400)], batch_size=48, shuffle=True, collate_fn=collate)
val_loader = DataLoader([review() for _ in range(500)], batch_size=250, collate_fn=collate)
model = Sentiment()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(1, 7):
    model.train()
    train_loss = 0.0
    for tokens, lengths, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens, lengths), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        train_loss += loss.item()
    model.eval()
    hits = 0
    with torch.no_grad():
        for tokens, lengths, labels in val_loader:
            hits += ((model(tokens, lengths) > 0).float() == labels).sum().item()
    print(f"epoch {epoch} train loss {train_loss / len(train_loader):.4f} val accuracy {hits / len(val_loader.dataset):.4f}")
