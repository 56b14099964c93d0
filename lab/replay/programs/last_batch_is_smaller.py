"""Keeps the state of the recurrent network between batches, and the last batch is smaller."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self, words=200, width=24, tags=5):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.tags = nn.Linear(width, tags)
        self.state = None

    def forward(self, words):
        found, state = self.lstm(self.words(words), self.state)
        self.state = tuple(part.detach() for part in state)
        return self.tags(found)


data = TensorDataset(torch.randint(200, (1000, 12)), torch.randint(5, (1000, 12)))
tagger = Tagger()
optimizer = torch.optim.AdamW(tagger.parameters())

for words, tags in DataLoader(data, batch_size=32, shuffle=True):
    scores = tagger(words)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
