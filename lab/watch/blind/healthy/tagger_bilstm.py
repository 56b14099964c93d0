"""Tags words with a BiLSTM; sentences are padded and most positions of a batch are padding."""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

random.seed(2)
torch.manual_seed(2)
VOCAB, TAGS, PAD_TAG = 80, 9, 0


def sentence():
    words = [random.randrange(1, VOCAB) for _ in range(random.choice([3, 4, 5, 40]))]
    tags = [1 + (words[i - 1] if i else 0) % 2 * 4 + w % 4 for i, w in enumerate(words)]
    return torch.tensor(words), torch.tensor(tags)


def collate(batch):
    words, tags = zip(*batch)
    lengths = torch.tensor([len(w) for w in words])
    return (pad_sequence(words, batch_first=True), lengths,
            pad_sequence(tags, batch_first=True, padding_value=PAD_TAG))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, 48, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.classify = nn.Linear(96, TAGS)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.classify(self.drop(out))


def evaluate(model, loader):
    model.eval()
    right = count = 0
    with torch.no_grad():
        for words, lengths, tags in loader:
            guess = model(words, lengths).argmax(-1)
            real = tags != PAD_TAG
            right += (guess[real] == tags[real]).sum().item()
            count += real.sum().item()
    return right / count


train = DataLoader([sentence() for _ in range(600)], batch_size=32, shuffle=True, collate_fn=collate)
valid = DataLoader([sentence() for _ in range(200)], batch_size=64, collate_fn=collate)
model = Tagger()
criterion = nn.CrossEntropyLoss(ignore_index=PAD_TAG)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(7):
    model.train()
    for words, lengths, tags in train:
        optimizer.zero_grad()
        loss = criterion(model(words, lengths).flatten(0, 1), tags.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch} train loss {loss.item():.4f} val token acc {evaluate(model, valid):.4f}")
